import { type Kysely, sql } from 'kysely'

/** Portable types only: text, integers, epoch ms, flags as 0/1, JSON in text. */
export type Schema = { job: JobTable; item: ItemTable; answer: AnswerTable }

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
}

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
  domain: string | null
  /** JSON of the route, while the item is routed. */
  route: string | null
  due_at: number
  /** The egress that must ask it; null: any. */
  egress: string | null
  /** Names of the egresses that were refused for it, blanks between; null: none. */
  refused_by: string | null
  /** How often a server was asked by the egress that it is with. */
  tries: number
  /** When it was first ready to be asked, epoch ms. */
  ready_at: number | null
  /** JSON of the result. */
  result: string | null
  class: string | null
}

/** Definite answers, kept for a while. */
export type AnswerTable = {
  address_key: string
  remembered: string
  keep_until: number
}

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released one is never changed, a new one is added. */
export const MIGRATIONS: Migrations = {
  '0001_lists': {
    async up(db) {
      await db.schema
        .createTable('job')
        .addColumn('id', 'text', column => column.primaryKey())
        .addColumn('state', 'text', column => column.notNull())
        .addColumn('source_key', 'text', column => column.notNull())
        .addColumn('source', 'text', column => column.notNull())
        .addColumn('total', 'bigint', column => column.notNull())
        .addColumn('done', 'bigint', column => column.notNull())
        .addColumn('duplicates', 'bigint', column => column.notNull())
        .addColumn('deliverable', 'bigint', column => column.notNull())
        .addColumn('risky', 'bigint', column => column.notNull())
        .addColumn('undeliverable', 'bigint', column => column.notNull())
        .addColumn('unknown', 'bigint', column => column.notNull())
        .addColumn('created_at', 'bigint', column => column.notNull())
        .addColumn('finished_at', 'bigint')
        .addColumn('written_at', 'bigint')
        .addCheckConstraint('job_done', sql`done <= total`)
        .addCheckConstraint(
          'job_finished',
          sql`(finished_at is null) = (state in ('loading', 'queued', 'processing'))`,
        )
        .execute()
      await db.schema
        .createIndex('job_source')
        .on('job')
        .columns(['source_key', 'created_at'])
        .execute()
      await db.schema
        .createTable('item')
        .addColumn('job_id', 'text', column => column.notNull())
        .addColumn('position', 'bigint', column => column.notNull())
        .addColumn('text', 'text', column => column.notNull())
        .addColumn('dedupe_key', 'text', column => column.notNull())
        .addColumn('state', 'text', column => column.notNull())
        .addColumn('same_as', 'bigint')
        .addColumn('copies', 'bigint', column => column.notNull())
        .addColumn('operator', 'text')
        .addColumn('domain', 'text')
        .addColumn('route', 'text')
        .addColumn('due_at', 'bigint', column => column.notNull())
        .addColumn('tries', 'integer', column => column.notNull())
        .addColumn('ready_at', 'bigint')
        .addColumn('result', 'text')
        .addColumn('class', 'text')
        .addPrimaryKeyConstraint('item_key', ['job_id', 'position'])
        .addCheckConstraint('item_result', sql`(result is not null) = (state = 'done')`)
        .addCheckConstraint('item_same', sql`(same_as is not null) = (state = 'same')`)
        .execute()
      // Partial indexes: each holds only what its claim looks for, and empties as the work goes on.
      await db.schema
        .createIndex('item_queued')
        .on('item')
        .columns(['job_id', 'position'])
        .where(sql.ref('state'), '=', 'queued')
        .execute()
      await db.schema
        .createIndex('item_routed')
        .on('item')
        .columns(['job_id', 'operator', 'domain', 'position'])
        .where(sql.ref('state'), '=', 'routed')
        .execute()
      await db.schema
        .createIndex('item_probing')
        .on('item')
        .columns(['job_id', 'position'])
        .where(sql.ref('state'), '=', 'probing')
        .execute()
      await db.schema
        .createTable('answer')
        .addColumn('address_key', 'text', column => column.primaryKey())
        .addColumn('remembered', 'text', column => column.notNull())
        .addColumn('keep_until', 'bigint', column => column.notNull())
        .execute()
      await db.schema.createIndex('answer_expiry').on('answer').column('keep_until').execute()
    },
  },
  '0002_egresses': {
    async up(db) {
      await db.schema.alterTable('item').addColumn('egress', 'text').execute()
      await db.schema.alterTable('item').addColumn('refused_by', 'text').execute()
      // A claim passes over what is not due or another egress's: here it sees that without reading the rows.
      await db.schema.dropIndex('item_routed').execute()
      await db.schema
        .createIndex('item_routed')
        .on('item')
        .columns(['job_id', 'operator', 'domain', 'position', 'due_at', 'egress'])
        .where(sql.ref('state'), '=', 'routed')
        .execute()
      // Few items have an egress of their own; most lists have none.
      await db.schema
        .createIndex('item_bound')
        .on('item')
        .columns(['job_id', 'operator', 'egress', 'domain', 'position', 'due_at'])
        .where(sql.ref('state'), '=', 'routed')
        .where(sql.ref('egress'), 'is not', null)
        .execute()
    },
  },
}
