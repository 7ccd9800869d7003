import type { VerificationSource } from '../accounts/tables.ts'

declare module '../db/schema.ts' {
  interface Schema {
    job: JobTable
    item: ItemTable
    answer: AnswerTable
  }
}

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

export type JobType = VerificationSource

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
