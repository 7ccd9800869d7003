import type { VerificationSource } from '../accounts/tables.ts'

declare module '../db/schema.ts' {
  interface Schema {
    job: JobTable
    item: ItemTable
    answer: AnswerTable
    schedule: ScheduleTable
  }
}

/**
 * State of a job: `loading` until all its items are stored. A job whose process crashed during
 * loading is loaded again.
 */
export type JobState = 'loading' | 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'

export type JobTable = {
  id: string
  state: JobState
  /** Identifies the source: submitting the same source again resumes the job. */
  source_key: string
  /** JSON of the data that its submitter needs to finish it. */
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
  /** When its output was completely written; a finished job without this time is written again. */
  written_at: number | null
  /** The owning account; null for a list of the command line. */
  account_id: string | null
  key_id: string | null
  /** `single` is one address, verified asynchronously. */
  type: JobType
  name: string | null
  /** 1 if its results are simulated. */
  sandbox: number
  /** Number of rows that are malformed addresses. */
  malformed: number
  /** Number of rows without an address, not even a malformed one; they are part of `unknown`. */
  no_address: number
  /** Number of rows with an internal failure, which are part of `unknown`. */
  failed: number
  started_at: number | null
  /** Error code; null unless the job failed. */
  error: string | null
  /**
   * Reserved credits that are not used yet, of the period that started at `credit_period`, epoch
   * ms.
   */
  held: number
  credit_period: number | null
  /** When the mail about its end is due; null if none is to be sent. */
  mail_due_at: number | null
  /** When someone asked to finish it without further retries; null if no one did. */
  finish_requested_at: number | null
  /** Identifies it within its account for clients whose job IDs are integers; null if it has none. */
  number: number | null
}

export type JobType = VerificationSource

/** `item-store.ts` has the table of transitions. */
export type ItemState = 'queued' | 'routed' | 'probing' | 'done' | 'same'

export type ItemTable = {
  job_id: string
  /** 1 for the first row of the list. */
  position: number
  text: string
  /** Equal for all rows with the same address; empty if it is the text. */
  dedupe_key: string
  state: ItemState
  same_as: number | null
  /** Number of rows of the list that share this item's result, itself included. */
  copies: number
  operator: string | null
  domain: string | null
  /** JSON of the route, while the item is routed. */
  route: string | null
  /** When its next attempt is due, epoch ms; 0 before the first one and while it waits for room. */
  due_at: number
  /** The egress that must probe the item; null for any. */
  egress: string | null
  /**
   * Space-separated names of the egresses that were blocked for this item; null if there are none.
   */
  refused_by: string | null
  /** JSON of the server's acceptance, while the catch-all test is still to be made. */
  accepted: string | null
  /** Number of attempts by the current egress. */
  tries: number
  /** When the item was first ready to be probed, epoch ms. */
  ready_at: number | null
  /** The result as `encodeResult` stores it; `null` for an erased address. */
  result: string | null
  /** The result of the latest probe, stored as `result` is, while the item waits for another one. */
  latest_result: string | null
  class: string | null
  /**
   * JSON of the data that came with the address and is returned with its result: the cells of its
   * row, or an ID.
   */
  cells: string | null
  /** The cluster member that claimed the item, while it is `probing`; null without a cluster. */
  holder: string | null
  /**
   * The result that the item had in the job that this one verifies again, as `class reason
   * checkedAt`; null if it is not verified again.
   */
  previous: string | null
}

/** Cache of definite answers with an expiry time. */
type AnswerTable = {
  /** The cache key: for an account, its ID precedes the key of the address. */
  address_key: string
  remembered: string
  keep_until: number
}

/** Why a run of a schedule created no job, or why the schedule is paused. */
export type RunError =
  | 'previous_run_unfinished'
  | 'nothing_to_verify'
  | 'credits_exceeded'
  | 'concurrent_jobs_exceeded'
  | 'stored_rows_exceeded'
  | 'results_deleted'

/** Verifies a list again at intervals. */
export type ScheduleTable = {
  id: string
  account_id: string
  /** The key that created it, to which the usage is charged. */
  key_id: string
  /** 1 if its list is simulated. */
  sandbox: number
  /** The list for which it was created. */
  job_id: string
  /** The job whose results the next run verifies again: the list, or the latest run. */
  latest_job_id: string
  every_days: number
  /** Comma-separated classes of the results to verify again; null for no such condition. */
  classes: string | null
  /** Age of the results to verify again; null for no such condition. */
  older_than_days: number | null
  notify: number
  /** Epoch ms; null while the schedule is paused. */
  next_run_at: number | null
  /** When the claim of the process that prepares a run expires; null if there is none. */
  claimed_until: number | null
  last_run_at: number | null
  /** Null if the last run created a job. */
  last_error: RunError | null
  created_at: number
}
