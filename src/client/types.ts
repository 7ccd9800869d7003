// Stands in until it is made from the API's own document.
// biome-ignore-all lint/suspicious/noExplicitAny: stands in
export type ErrorCode = string
export type SingleRequest = {
  email: string
  check_smtp?: boolean
  force_refresh?: boolean
  async?: boolean
}
export type SingleResult = any
export type ScoredResult = any
export type AsyncAccepted = any
export type BulkItem = any
export type BatchRequest = any
export type InstantBulk = any
export type QueuedBulk = any
export type QueuedBatch = any
export type QueuedFile = any
export type Job = any
export type ListedJob = any
export type DownloadRow = any
export type ListJobsQuery = any
export type HistoryItem = any
export type ListHistoryQuery = any
export type GetStatsQuery = any
export type Stats = any
export type Credits = any
export type CreateKeyBody = any
export type Key = any
export type NewKey = any
export type RotateKeyBody = any
export type UpdateKeyBody = any
export type CreateWebhookBody = any
export type NewWebhook = any
export type UpdateWebhookBody = any
export type Webhook = any
