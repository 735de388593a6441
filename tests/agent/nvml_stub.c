/* Plays the NVIDIA driver's management library for tests. Our own code; it knows no real device.
 *
 * NVML_STUB_STATE names a file of lines "key value", read anew at each call:
 *   count N                     devices
 *   D.util, D.used, D.total, D.power, D.limit, D.temp, D.clock, D.throttle    numbers of device D
 *   fail.FUNCTION CODE          FUNCTION returns CODE (for every device)
 *   D.fail.FUNCTION CODE        ... for device D only
 *   xid D:CODE                  one event waits (taken once per change of the value)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int ret_t;
typedef struct { int index; } dev_t_;
typedef struct { unsigned int gpu, memory; } util_t;
typedef struct { unsigned long long total, free, used; } mem_t;
typedef struct { void *device; unsigned long long type, data; unsigned int gi, ci; } event_t;

enum { OK = 0, INVALID = 2, NOT_FOUND = 6, TIMEOUT = 10 };

static dev_t_ devices[16];
static char taken[64];

static int lookup(const char *key, char *out, size_t size)
{
    const char *path = getenv("NVML_STUB_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256], name[128], value[128];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, "%127s %127s", name, value) == 2 && !strcmp(name, key)) {
            snprintf(out, size, "%s", value);
            found = 1;
        }
    if (file)
        fclose(file);
    return found;
}

static unsigned long long number(int index, const char *what)
{
    char key[64], value[128];
    snprintf(key, sizeof key, "%d.%s", index, what);
    return lookup(key, value, sizeof value) ? strtoull(value, NULL, 10) : 0;
}

static ret_t failing(int index, const char *function)
{
    char key[128], value[128];
    snprintf(key, sizeof key, "fail.%s", function);
    if (lookup(key, value, sizeof value))
        return atoi(value);
    snprintf(key, sizeof key, "%d.fail.%s", index, function);
    return lookup(key, value, sizeof value) ? atoi(value) : OK;
}

#define INDEX(device) (((dev_t_ *)(device))->index)
#define CHECK(index) do { ret_t r = failing(index, __func__); if (r) return r; } while (0)

ret_t nvmlInitWithFlags(unsigned int flags) { (void)flags; CHECK(-1); return OK; }
ret_t nvmlInit_v2(void) { CHECK(-1); return OK; }
ret_t nvmlInit(void) { return nvmlInit_v2(); }
ret_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(ret_t code)
{
    return code == 15 ? "GPU is lost" : code == 9 ? "Driver Not Loaded" : "some error";
}

ret_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    char value[128];
    CHECK(-1);
    *count = lookup("count", value, sizeof value) ? (unsigned int)atoi(value) : 0;
    return OK;
}

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    CHECK((int)index);
    devices[index].index = (int)index;
    *device = &devices[index];
    return OK;
}

ret_t nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    CHECK(-1);
    if (strncmp(uuid, "MIG-", 4))
        return NOT_FOUND;
    *device = &devices[atoi(uuid + 4)];
    return OK;
}

ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *mig, void **device) { *device = mig; return OK; }
ret_t nvmlDeviceGetIndex(void *device, unsigned int *index) { *index = (unsigned int)INDEX(device); return OK; }

ret_t nvmlDeviceGetUUID(void *device, char *uuid, unsigned int size)
{
    CHECK(INDEX(device));
    snprintf(uuid, size, "GPU-%d%d%d-stub", INDEX(device), INDEX(device), INDEX(device));
    return OK;
}

ret_t nvmlDeviceGetName(void *device, char *name, unsigned int size)
{
    CHECK(INDEX(device));
    snprintf(name, size, "Stub %d", INDEX(device));
    return OK;
}

ret_t nvmlDeviceGetUtilizationRates(void *device, util_t *out)
{
    CHECK(INDEX(device));
    out->gpu = (unsigned int)number(INDEX(device), "util");
    return OK;
}

ret_t nvmlDeviceGetMemoryInfo(void *device, mem_t *out)
{
    CHECK(INDEX(device));
    out->used = number(INDEX(device), "used");
    out->total = number(INDEX(device), "total");
    return OK;
}

#define NUMBER(function, key) \
    ret_t function(void *device, unsigned int *out) \
    { CHECK(INDEX(device)); *out = (unsigned int)number(INDEX(device), key); return OK; }

NUMBER(nvmlDeviceGetPowerUsage, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "limit")

ret_t nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *out)
{
    (void)sensor;
    CHECK(INDEX(device));
    *out = (unsigned int)number(INDEX(device), "temp");
    return OK;
}

ret_t nvmlDeviceGetClockInfo(void *device, int clock, unsigned int *out)
{
    (void)clock;
    CHECK(INDEX(device));
    *out = (unsigned int)number(INDEX(device), "clock");
    return OK;
}

/* Only the older of its two names: the newer one is not found, as with older drivers. */
ret_t nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out)
{
    CHECK(INDEX(device));
    *out = number(INDEX(device), "throttle");
    return OK;
}

ret_t nvmlEventSetCreate(void **set) { *set = devices; return OK; }
ret_t nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    (void)types, (void)set;
    CHECK(INDEX(device));
    return OK;
}

ret_t nvmlEventSetWait_v2(void *set, event_t *data, unsigned int timeout_ms)
{
    char value[64];
    int index, xid;
    (void)set, (void)timeout_ms;
    if (!lookup("xid", value, sizeof value) || !strcmp(value, taken))
        return TIMEOUT;
    snprintf(taken, sizeof taken, "%s", value);
    if (sscanf(value, "%d:%d", &index, &xid) != 2)
        return INVALID;
    memset(data, 0, sizeof *data);
    data->device = &devices[index];
    data->type = 8;
    data->data = (unsigned long long)xid;
    return OK;
}
