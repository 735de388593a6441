/** Simplified Chinese for the list of runs and the comparison. */

export const RUNS = {
  "All runs": "所有运行",
  "Duration": "时长",
  "No runs yet. Start one with: {command}": "还没有运行。用这条命令开始：{command}",
  "Run": "运行",
  "Runs": "运行列表",
  "Started": "开始时间",
  "Status": "状态",
  "Steps": "步数",
  "Steps/s": "步/秒",
  "The hub does not answer. Trying again…": "监控服务没有响应，正在重试……",
};
