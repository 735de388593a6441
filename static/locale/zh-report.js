/** Simplified Chinese for what only the exported report says; monitor/exports reads it, no page loads it. */

export const REPORT = {
  " (over)": "（已消失）",
  "CPU, loader workers": "CPU，数据加载工作进程",
  "Configuration and facts": "配置与事实",
  "Memory of the process tree": "进程树的内存",
  "Not checked": "未检查",
  "Nothing was found that holds this run back.": "没有发现拖慢这次运行的问题。",
  "Number of ranks": "rank 数",
  "Records lost": "丢失的记录",
  "Resident memory": "常驻内存",
  "Samples per second": "每秒样本数",
  "Share of time waiting for data": "等待数据的时间占比",
  "Step time by rank": "各 rank 的单步耗时",
  "Step time p50 / p95 / p99": "单步耗时 p50 / p95 / p99",
  "Steps per second": "每秒步数",
  "Tokens per second": "每秒词元数",
  "torchvitals report of {run}": "torchvitals 报告：{run}",
  "{label} from {first} to {last} {unit}": "{label}：从 {first} 到 {last} {unit}",
  "{status}: {reason}": "{status}：{reason}",
  "{times} times as fast without it.": "若消除它，速度将是现在的 {times} 倍。",
};
