import type { DeliveryError, DisabledCode } from '../webhooks/delivery-error.ts'
import type {
  AccountTable,
  ApiKeyTable,
  CreditTable,
  KeySecretTable,
  SessionTable,
  UsageTable,
} from '../accounts/tables.ts'
import type {
  BucketTable,
  CatchAllTable,
  HoldTable,
  MemberTable,
  PaceTable,
  SettingTable,
} from '../cluster/tables.ts'

/** Portable types only: text, integers, epoch ms, flags as 0/1, JSON in text. */
export type Schema = {
  job: JobTable
  item: ItemTable
  answer: AnswerTable
  account: AccountTable
  api_key: ApiKeyTable
  key_secret: KeySecretTable
  session: SessionTable
  credit: CreditTable
  usage: UsageTable
  verification: VerificationTable
  event: EventTable
  webhook: WebhookTable
  delivery: DeliveryTable
  attempt: AttemptTable
  notice: NoticeTable
  replay: ReplayTable
  member: MemberTable
  hold: HoldTable
  pace: PaceTable
  catch_all: CatchAllTable
  bucket: BucketTable
  setting: SettingTable
}

/** All of them. */
export const TABLES = [
  ...(['job', 'item', 'answer', 'account', 'api_key', 'key_secret', 'session', 'credit'] as const),
  ...(['usage', 'verification', 'event', 'webhook', 'delivery', 'attempt', 'notice'] as const),
  ...(['replay', 'member', 'hold', 'pace', 'catch_all', 'bucket', 'setting'] as const),
] as const satisfies readonly (keyof Schema)[]

/** A list. `loading` until all its items are stored; a job that died while loading is loaded anew. */
export type JobState = 'loading' | 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'

export type JobTable = {
  id: string
  state: JobState
  /** What it was made from: the same source asked for again resumes the job. */
  source_key: string
  /** JSON: what whoever submitted it needs to finish it. */
  source: string
  total: number
  done: number
  duplicates: number
  deliverable: number
  risky: number
  undeliverable: number
  unknown: number
  created_at: number
  finished_at: number | null
  /** When its output was written whole; a finished job without it is written again. */
  written_at: number | null
  /** Whose it is; null: a list of the command line. */
  account_id: string | null
  key_id: string | null
  /** `single`: one address, verified without somebody waiting for it. */
  type: JobType
  name: string | null
  /** 1: its results are simulated. */
  sandbox: number
  /** Rows whose text is no address. */
  malformed: number
  /** Rows that something inside ev ended, among the unknown ones. */
  failed: number
  started_at: number | null
  /** The code of what ended it, where it failed. */
  error: string | null
  /** Credits that it may still use, of the period that began then, epoch ms. */
  held: number
  credit_period: number | null
}

export type JobType = 'list' | 'single' | 'bulk' | 'batch' | 'file'

/** `queued` → `routed` → `probing` → `done`; `same` has the result of the item at `same_as`. */
export type ItemState = 'queued' | 'routed' | 'probing' | 'done' | 'same'

export type ItemTable = {
  job_id: string
  /** 1 for the first row of the list. */
  position: number
  text: string
  /** By which duplicates are told. */
  dedupe_key: string
  state: ItemState
  same_as: number | null
  /** Rows of the list that share this item's result, itself included. */
  copies: number
  operator: string | null
  /** The operator to ask while the first one cannot be; null: there is none. */
  backup_operator: string | null
  domain: string | null
  /** JSON of the route, while the item is routed. */
  route: string | null
  due_at: number
  /** The egress that must ask it; null: any. */
  egress: string | null
  /** Names of the egresses that were refused for it, blanks between; null: none. */
  refused_by: string | null
  /** JSON of what the server said when it accepted the address, while the catch-all test is to be made up for. */
  accepted: string | null
  /** How often a server was asked by the egress that it is with. */
  tries: number
  /** When it was first ready to be asked, epoch ms. */
  ready_at: number | null
  /** JSON of the result. */
  result: string | null
  class: string | null
  /** JSON of what came with the address and goes back with its result: the cells of its row, or an id. */
  cells: string | null
  /** The member of the cluster that asks it, while it is `probing`; null: there is no cluster. */
  holder: string | null
}

/** Definite answers, kept for a while. */
export type AnswerTable = {
  address_key: string
  remembered: string
  keep_until: number
}

/** The history: one row for each address that was verified. */
export type VerificationTable = {
  id: string
  account_id: string
  key_id: string
  email: string
  valid: number
  deliverable: number
  risk_level: string
  reason: string
  class: string
  cached: number
  source: JobType
  job_id: string | null
  sandbox: number
  created_at: number
}

/** Something that was told to who subscribed to it. */
export type EventTable = {
  id: string
  account_id: string
  kind: string
  /** The JSON that is sent, the same bytes each time. */
  body: string
  created_at: number
}

export type WebhookTable = {
  id: string
  account_id: string
  url: string
  /** JSON: an array of kinds of events. */
  events: string
  active: number
  description: string | null
  /** Sealed: it signs what is sent, so it must be read again. */
  secret: string
  /** Its last characters, to be shown. */
  secret_hint: string
  /** Sealed: the secret before this one, with which is signed beside it until then; null: there is none. */
  previous_secret: string | null
  previous_until: number | null
  created_at: number
  updated_at: number
  /** Why the service switched it off, for people and for programs; null: it did not. */
  disabled_reason: string | null
  disabled_code: DisabledCode | null
  /** When the first of the attempts failed that failed one after the other until now; null: the last one did not. */
  failing_since: number | null
  /** Deleted: its deliveries go in steps, and it goes with the last of them. */
  deleted_at: number | null
}

export type DeliveryState = 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
/** Why it is sent: an event happened, somebody asked for it once more, or somebody tries the endpoint out. */
export type DeliveryTrigger = 'scheduled' | 'manual' | 'test'

/** One event on its way to one webhook. */
export type DeliveryTable = {
  id: string
  event_id: string
  webhook_id: string
  /** That of the event. */
  kind: string
  state: DeliveryState
  trigger: DeliveryTrigger
  /** Attempts of this round; asking for it once more begins another. */
  attempt: number
  due_at: number
  created_at: number
  /** Of the last attempt. */
  status_code: number | null
  duration_ms: number | null
  error: string | null
  error_code: DeliveryError | null
  /** When it is forgotten; null while it is on its way. */
  expires_at: number | null
}

/** One request to a webhook, and what came of it. */
export type AttemptTable = {
  delivery_id: string
  /** 1 for the first of its delivery. */
  number: number
  trigger: DeliveryTrigger
  url: string
  started_at: number
  duration_ms: number
  /** Null: no answer. */
  status_code: number | null
  /** JSON: headers of the answer; null: no answer. */
  headers: string | null
  /** The beginning of the body of the answer, cleaned. */
  excerpt: string | null
  /** What was wrong, in a sentence; null: nothing. */
  error: string | null
  /** The same for programs. */
  error_code: DeliveryError | null
}

/** What the owner of a webhook is to be told; one row for each webhook that was ever in trouble. */
export type NoticeTable = {
  webhook_id: string
  account_id: string
  /** Events that were given up since the last notice. */
  failed_events: number
  last_error: string | null
  /** Why it was switched off since the last notice; null: it was not. */
  disabled_reason: string | null
  /** When the next notice goes out; null: there is nothing to tell. */
  due_at: number | null
  /** When the last one went out. */
  sent_at: number | null
}

/** What a request with an Idempotency-Key was answered with. */
export type ReplayTable = {
  key_id: string
  idempotency_key: string
  /** SHA-256 of method, path and body, hexadecimal. */
  fingerprint: string
  status: number
  /** JSON, sealed: it may hold a secret that is shown once. */
  answer: string
  created_at: number
}
