import { type Kysely, sql } from 'kysely'

/** Adds the tables of feedback. Both dialects accept the same types. */
export async function addFeedback(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

/**
 * Adds the operators of catch-all domains, from which the weight of a prior is estimated, and the
 * numbers of pieces by day.
 */
export async function addFeedbackCounts(db: Kysely<unknown>): Promise<void> {
  await sql`alter table feedback_domain add column catch_all_operator text`.execute(db)
  await sql`
    create table feedback_day (
      account_id text not null,
      day bigint not null,
      source text not null,
      kind text not null,
      pieces bigint not null,
      constraint feedback_day_key primary key (account_id, day, source, kind)
    )`.execute(db)
}

/** Counts the pieces of accounts. */
export async function addFeedbackPieces(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table feedback_account add column pieces bigint default 0 not null`.execute(db)
  await sql`
    update feedback_account set pieces = (
      select count(*) from feedback where feedback.account_id = feedback_account.account_id)`.execute(
    db,
  )
}

/** Adds the sources of feedback, and the replies that feedback confirms or contradicts. */
export async function addFeedbackSources(db: Kysely<unknown>): Promise<void> {
  for (const statement of SOURCE_STATEMENTS) await sql.raw(statement).execute(db)
}

const SOURCE_STATEMENTS = [
  `create table feedback_source (
    id text primary key,
    account_id text not null,
    provider text not null,
    secret text not null,
    key_hint text not null,
    created_at bigint not null,
    last_received_at bigint
  )`,
  'create index feedback_source_account on feedback_source (account_id)',
  'alter table feedback_address add column reply text',
  `create table feedback_reply (
    account_id text not null,
    period bigint not null,
    operator text not null,
    reply text not null,
    confirmed bigint not null,
    contradicted bigint not null,
    constraint feedback_reply_key primary key (account_id, period, operator, reply)
  )`,
]

const STATEMENTS = [
  `create table feedback (
    account_id text not null,
    dedupe_key text not null,
    address_key text not null,
    kind text not null,
    outcome text,
    code integer,
    enhanced_code text,
    text text,
    occurred_at bigint not null,
    source text not null,
    created_at bigint not null,
    constraint feedback_key primary key (account_id, dedupe_key)
  )`,
  'create index feedback_age on feedback (created_at)',
  'create index feedback_of_address on feedback (address_key)',
  `create table feedback_account (
    account_id text primary key,
    created_at bigint not null
  )`,
  `create table feedback_address (
    address_key text not null,
    account_id text not null,
    outcome text,
    kind text,
    code integer,
    enhanced_code text,
    text text,
    occurred_at bigint,
    contradicted integer not null,
    reason text,
    operator text,
    confidence integer,
    deliverable integer,
    verified_at bigint,
    counted text,
    constraint feedback_address_key primary key (address_key, account_id)
  )`,
  `create table feedback_count (
    account_id text not null,
    period bigint not null,
    reason text not null,
    operator text not null,
    confidence integer not null,
    correct bigint not null,
    wrong bigint not null,
    constraint feedback_count_key primary key (account_id, period, reason, operator, confidence)
  )`,
  `create table feedback_domain (
    domain text not null,
    account_id text not null,
    alive bigint not null,
    dead bigint not null,
    constraint feedback_domain_key primary key (domain, account_id)
  )`,
]
