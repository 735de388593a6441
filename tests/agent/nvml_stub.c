/* Plays the NVIDIA driver's management library for tests. Our own code; it knows no real device.
 *
 * NVML_STUB_STATE names a file of lines "key value", read anew at each call. D is a device, "0", or a MIG
 * part of one, "0.2":
 *   count N                     devices
 *   D.util, D.used, D.total, D.power, D.limit, D.temp, D.clock, D.maxclock, D.throttle, D.energy    numbers
 *   D.ecc.0, D.ecc.1            corrected and uncorrected memory errors
 *   D.pcie.0, D.pcie.1          KB/s sent and received
 *   D.field.N, D.kind.N, D.time value of field N (not supported where missing), of which type, its time in us
 *   D.mig 1                     the device is cut into parts; D.P.gi N is the instance of its part P
 *   D.gpm 1, D.gpm.N            activity is supported; per cent of metric N (not supported where missing)
 *   D.procs PID:BYTES,…         processes; D.procutil PID:PERCENT:TIME,… what they used
 *   fail.FUNCTION CODE          FUNCTION returns CODE (for every device)
 *   D.fail.FUNCTION CODE        … for device D only
 *   slow.FUNCTION MS            FUNCTION takes so long
 *   xid D:CODE                  one event waits (taken once per change of the value)
 * Built with -DOLD it lacks what drivers before R510 lack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int ret_t;
typedef unsigned long long u64;
typedef struct { int index, part; } dev_t_;
typedef struct { unsigned int gpu, memory; } util_t;
typedef struct { u64 total, free, used; } mem_t;
typedef struct { void *device; u64 type, data; unsigned int gi, ci; } event_t;
typedef struct { unsigned int field, scope; long long time_us, latency_us; unsigned int kind; ret_t ret; u64 value; } field_t;
typedef struct { unsigned int pid; u64 memory; unsigned int gi, ci; } proc_t;
typedef struct { unsigned int pid; u64 time_us; unsigned int sm, mem, enc, dec; } used_t;
typedef struct { int taken, index, part; } sample_t;
typedef struct { unsigned int id; ret_t ret; double value; const char *texts[3]; } metric_t;
typedef struct { unsigned int version, count; sample_t *before, *now; metric_t metrics[]; } metrics_t;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10 };

static dev_t_ devices[16], parts[16][16];
static char taken[64];
#ifndef OLD
static int tick;
#endif

static int lookup(const char *key, char *out, size_t size)
{
    const char *path = getenv("NVML_STUB_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], name[128], value[384];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, "%127s %383s", name, value) == 2 && !strcmp(name, key)) {
            snprintf(out, size, "%s", value);
            found = 1;
        }
    if (file)
        fclose(file);
    return found;
}

/* The name of a device, "0" or "0.2"; "-1" for none. */
static const char *named(void *device, char *out, size_t size)
{
    dev_t_ *d = device;
    if (d && d->part >= 0)
        snprintf(out, size, "%d.%d", d->index, d->part);
    else
        snprintf(out, size, "%d", d ? d->index : -1);
    return out;
}

static int text(void *device, const char *what, char *out, size_t size)
{
    char key[128], name[32];
    snprintf(key, sizeof key, "%s.%s", named(device, name, sizeof name), what);
    return lookup(key, out, size);
}

static int known(void *device, const char *what, int which, u64 *out)
{
    char key[64], value[64];
    snprintf(key, sizeof key, which < 0 ? "%s" : "%s.%d", what, which);
    if (!text(device, key, value, sizeof value))
        return 0;
    *out = strtoull(value, NULL, 10);
    return 1;
}

static u64 number(void *device, const char *what)
{
    u64 value = 0;
    known(device, what, -1, &value);
    return value;
}

static ret_t failing(void *device, const char *function)
{
    char key[128], value[64];
    snprintf(key, sizeof key, "slow.%s", function);
    if (lookup(key, value, sizeof value))
        usleep(1000 * (unsigned int)atoi(value));
    snprintf(key, sizeof key, "fail.%s", function);
    if (lookup(key, value, sizeof value) || text(device, key, value, sizeof value))
        return atoi(value);
    return OK;
}

#define CHECK(device) do { ret_t r = failing(device, __func__); if (r) return r; } while (0)

ret_t nvmlInitWithFlags(unsigned int flags) { (void)flags; CHECK(NULL); return OK; }
ret_t nvmlInit_v2(void) { CHECK(NULL); return OK; }
ret_t nvmlInit(void) { return nvmlInit_v2(); }
ret_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(ret_t code)
{
    return code == 15 ? "GPU is lost" : code == 9 ? "Driver Not Loaded" : "some error";
}

ret_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    char value[128];
    CHECK(NULL);
    *count = lookup("count", value, sizeof value) ? (unsigned int)atoi(value) : 0;
    return OK;
}

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    if (index >= 16)
        return INVALID;
    devices[index].index = (int)index;
    devices[index].part = -1;
    CHECK(&devices[index]);
    *device = &devices[index];
    return OK;
}

ret_t nvmlDeviceGetMigMode(void *device, unsigned int *now, unsigned int *later)
{
    u64 mode;
    CHECK(device);
    if (!known(device, "mig", -1, &mode))
        return NOT_SUPPORTED;
    *now = *later = (unsigned int)mode;
    return OK;
}

ret_t nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *count) { CHECK(device); *count = 7; return OK; }

ret_t nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **out)
{
    int board = ((dev_t_ *)device)->index;
    dev_t_ *part = &parts[board][index];
    CHECK(device);
    part->index = board;
    part->part = (int)index;
    if (!number(part, "gi"))
        return NOT_FOUND;
    *out = part;
    return OK;
}

ret_t nvmlDeviceGetGpuInstanceId(void *device, unsigned int *id)
{
    CHECK(device);
    *id = (unsigned int)number(device, "gi");
    return OK;
}

ret_t nvmlDeviceGetIndex(void *device, unsigned int *index)
{
    CHECK(device);
    *index = (unsigned int)((dev_t_ *)device)->index;
    return OK;
}

ret_t nvmlDeviceGetUUID(void *device, char *uuid, unsigned int size)
{
    dev_t_ *d = device;
    CHECK(device);
    if (d->part >= 0)
        snprintf(uuid, size, "MIG-%d%d%d-stub", d->index, d->part, d->part);
    else
        snprintf(uuid, size, "GPU-%d%d%d-stub", d->index, d->index, d->index);
    return OK;
}

ret_t nvmlDeviceGetName(void *device, char *name, unsigned int size)
{
    char told[96];
    CHECK(device);
    snprintf(name, size, "%s", text(device, "name", told, sizeof told) ? told : "Stub");
    return OK;
}

ret_t nvmlDeviceGetUtilizationRates(void *device, util_t *out)
{
    CHECK(device);
    out->gpu = (unsigned int)number(device, "util");
    return OK;
}

ret_t nvmlDeviceGetMemoryInfo(void *device, mem_t *out)
{
    CHECK(device);
    out->used = number(device, "used");
    out->total = number(device, "total");
    return OK;
}

#define NUMBER(function, type, key) \
    ret_t function(void *device, type *out) \
    { CHECK(device); *out = (type)number(device, key); return OK; }
#define OF_KIND(function, key) \
    ret_t function(void *device, int kind, unsigned int *out) \
    { (void)kind; CHECK(device); *out = (unsigned int)number(device, key); return OK; }

NUMBER(nvmlDeviceGetPowerUsage, unsigned int, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, "limit")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, "energy")
OF_KIND(nvmlDeviceGetTemperature, "temp")
OF_KIND(nvmlDeviceGetClockInfo, "clock")
OF_KIND(nvmlDeviceGetMaxClockInfo, "maxclock")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "throttle")
#ifndef OLD
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "throttle")
#endif

ret_t nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, u64 *out)
{
    (void)counter;
    CHECK(device);
    return known(device, "ecc", kind, out) ? OK : NOT_SUPPORTED;
}

ret_t nvmlDeviceGetPcieThroughput(void *device, int which, unsigned int *out)
{
    u64 value = 0;
    CHECK(device);
    if (!known(device, "pcie", which, &value))
        return NOT_SUPPORTED;
    *out = (unsigned int)value;
    return OK;
}

#ifndef OLD
ret_t nvmlDeviceGetFieldValues(void *device, int count, field_t *fields)
{
    CHECK(device);
    for (int i = 0; i < count; i++) {
        u64 kind = 3;
        fields[i].ret = known(device, "field", (int)fields[i].field, &fields[i].value) ? OK : NOT_SUPPORTED;
        known(device, "kind", (int)fields[i].field, &kind);
        fields[i].kind = (unsigned int)kind;
        fields[i].time_us = (long long)number(device, "time");
    }
    return OK;
}
#endif

static ret_t processes(void *device, unsigned int *count, proc_t *out)
{
    char list[384];
    unsigned int found = 0, room = *count;
    if (!text(device, "procs", list, sizeof list)) {
        *count = 0;
        return OK;
    }
    for (char *at = strtok(list, ","); at; at = strtok(NULL, ","), found++) {
        u64 pid = 0, memory = 0;
        if (sscanf(at, "%llu:%llu", &pid, &memory) < 2)
            memory = ~0ULL; /* the driver does not tell */
        if (out && found < room) {
            memset(&out[found], 0, sizeof *out);
            out[found].pid = (unsigned int)pid;
            out[found].memory = memory;
        }
    }
    *count = found;
    return found <= room && out ? OK : TOO_SMALL;
}

ret_t nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned int *count, proc_t *out)
{
    CHECK(device);
    return processes(device, count, out);
}

#ifndef OLD
ret_t nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, proc_t *out)
{
    CHECK(device);
    return processes(device, count, out);
}
#endif

ret_t nvmlDeviceGetProcessUtilization(void *device, used_t *out, unsigned int *count, u64 since_us)
{
    char list[384];
    unsigned int found = 0;
    CHECK(device);
    if (!text(device, "procutil", list, sizeof list))
        return NOT_FOUND;
    for (char *at = strtok(list, ","); at; at = strtok(NULL, ",")) {
        u64 pid = 0, sm = 0, time_us = 0;
        sscanf(at, "%llu:%llu:%llu", &pid, &sm, &time_us);
        if (time_us <= since_us)
            continue;
        if (out && found < *count) {
            memset(&out[found], 0, sizeof *out);
            out[found].pid = (unsigned int)pid;
            out[found].sm = (unsigned int)sm;
            out[found].time_us = time_us;
        }
        found++;
    }
    *count = found;
    return !found ? NOT_FOUND : out ? OK : TOO_SMALL;
}

#ifndef OLD
typedef struct { unsigned int version, supported; } support_t;

ret_t nvmlGpmQueryDeviceSupport(void *device, support_t *out)
{
    CHECK(device);
    out->supported = (unsigned int)number(device, "gpm");
    return OK;
}

ret_t nvmlGpmSampleAlloc(sample_t **sample)
{
    CHECK(NULL);
    *sample = calloc(1, sizeof **sample);
    return OK;
}

ret_t nvmlGpmSampleFree(sample_t *sample) { free(sample); return OK; }

static ret_t sampled(int index, int part, sample_t *sample)
{
    sample->taken = ++tick;
    sample->index = index;
    sample->part = part;
    return OK;
}

ret_t nvmlGpmSampleGet(void *device, sample_t *sample)
{
    CHECK(device);
    return sampled(((dev_t_ *)device)->index, -1, sample);
}

ret_t nvmlGpmMigSampleGet(void *device, unsigned int gi, sample_t *sample)
{
    int board = ((dev_t_ *)device)->index;
    CHECK(device);
    for (int part = 0; part < 16; part++)
        if (parts[board][part].part == part && number(&parts[board][part], "gi") == gi)
            return sampled(board, part, sample);
    return INVALID;
}

ret_t nvmlGpmMetricsGet(metrics_t *question)
{
    sample_t *before = question->before, *now = question->now;
    dev_t_ *device;
    CHECK(NULL);
    if (question->version != 1 || !before || !now || !before->taken || before->taken >= now->taken
        || before->index != now->index || before->part != now->part)
        return INVALID;
    device = now->part < 0 ? &devices[now->index] : &parts[now->index][now->part];
    for (unsigned int i = 0; i < question->count; i++) {
        u64 value = 0;
        question->metrics[i].ret = known(device, "gpm", (int)question->metrics[i].id, &value) ? OK : NOT_SUPPORTED;
        question->metrics[i].value = (double)value;
    }
    return OK;
}
#endif

ret_t nvmlEventSetCreate(void **set) { CHECK(NULL); *set = devices; return OK; }
ret_t nvmlDeviceRegisterEvents(void *device, u64 types, void *set)
{
    (void)types, (void)set;
    CHECK(device);
    return OK;
}

ret_t nvmlEventSetWait_v2(void *set, event_t *data, unsigned int timeout_ms)
{
    char value[64];
    int index, xid;
    (void)set, (void)timeout_ms;
    CHECK(NULL);
    if (!lookup("xid", value, sizeof value) || !strcmp(value, taken))
        return TIMEOUT;
    snprintf(taken, sizeof taken, "%s", value);
    if (sscanf(value, "%d:%d", &index, &xid) != 2)
        return INVALID;
    memset(data, 0, sizeof *data);
    data->device = &devices[index];
    data->type = 8;
    data->data = (u64)xid;
    return OK;
}
