import { type Kysely, sql } from 'kysely'
import { isPostgres } from './sql-dialect.ts'

/** Creates the tables of the first release. Both dialects accept the same types. */
export async function initial(db: Kysely<unknown>): Promise<void> {
  const statements = [...LISTS, ...ACCOUNTS, ...historyStatements(db), ...WEBHOOKS, ...CLUSTER]
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const LISTS = [
  `create table job (
    id text primary key,
    state text not null,
    source_key text not null,
    source text not null,
    total bigint not null,
    done bigint not null,
    duplicates bigint not null,
    deliverable bigint not null,
    risky bigint not null,
    undeliverable bigint not null,
    unknown bigint not null,
    created_at bigint not null,
    finished_at bigint,
    written_at bigint,
    account_id text,
    key_id text,
    name text,
    error text,
    type text default 'list' not null,
    sandbox bigint default 0 not null,
    malformed bigint default 0 not null,
    failed bigint default 0 not null,
    held bigint default 0 not null,
    started_at bigint,
    credit_period bigint,
    constraint job_done check (done <= total),
    constraint job_finished
      check ((finished_at is null) = (state in ('loading', 'queued', 'processing')))
  )`,
  'create index job_source on job (source_key, created_at)',
  'create index job_account on job (account_id, created_at, id)',
  'create index job_open on job (created_at, id) where finished_at is null',
  `create index job_open_list on job (account_id)
    where finished_at is null and type <> 'single'`,
  `create table item (
    job_id text not null,
    position bigint not null,
    text text not null,
    dedupe_key text not null,
    state text not null,
    same_as bigint,
    copies bigint not null,
    operator text,
    domain text,
    route text,
    due_at bigint not null,
    tries integer not null,
    ready_at bigint,
    result text,
    class text,
    egress text,
    refused_by text,
    cells text,
    holder text,
    accepted text,
    backup_operator text,
    constraint item_key primary key (job_id, position),
    constraint item_result check ((result is not null) = (state = 'done')),
    constraint item_same check ((same_as is not null) = (state = 'same'))
  )`,
  // Partial indexes: each holds only the items that its claim reads, and shrinks as they are done.
  `create index item_queued on item (job_id, position) where state = 'queued'`,
  `create index item_probing on item (job_id, position) where state = 'probing'`,
  // A session probes the items of its operator in all jobs. With due_at and egress in the index,
  // a claim skips items that are not due or belong to another egress without reading their rows.
  `create index item_routed on item (operator, job_id, domain, position, due_at, egress)
    where state = 'routed'`,
  // Few items are pinned to an egress; most jobs have none.
  `create index item_bound on item (job_id, operator, egress, domain, position, due_at)
    where state = 'routed' and egress is not null`,
  // Few items have a second operator; only they are claimed while the first operator is paused.
  `create index item_backup on item (job_id, operator, domain, position, due_at)
    where state = 'routed' and backup_operator is not null`,
  'create index item_holder on item (holder) where holder is not null',
  `create table answer (
    address_key text primary key,
    remembered text not null,
    keep_until bigint not null
  )`,
  'create index answer_expiry on answer (keep_until)',
]

const ACCOUNTS = [
  `create table account (
    id text primary key,
    name text not null,
    plan text not null,
    created_at bigint not null,
    email text,
    operator integer default 0 not null,
    stored_rows bigint default 0 not null
  )`,
  `create table api_key (
    id text primary key,
    account_id text not null,
    name text not null,
    scopes text not null,
    allowed_ips text not null,
    allowed_domains text not null,
    rate_limit_per_minute integer,
    created_at bigint not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint
  )`,
  'create index api_key_account on api_key (account_id)',
  `create table key_secret (
    hash text primary key,
    key_id text not null,
    prefix text not null,
    hint text not null,
    created_at bigint not null,
    expires_at bigint
  )`,
  'create index key_secret_key on key_secret (key_id)',
  `create table session (
    id text primary key,
    hash text not null unique,
    key_id text not null,
    account_id text not null,
    created_at bigint not null,
    last_seen_at bigint not null,
    expires_at bigint not null,
    ip text not null,
    agent text not null,
    secret_expires_at bigint
  )`,
  'create index session_account on session (account_id, last_seen_at)',
  'create index session_key on session (key_id, last_seen_at)',
  'create index session_expiry on session (expires_at)',
  'create index session_idle on session (last_seen_at)',
  `create table credit (
    account_id text not null,
    period_start bigint not null,
    used bigint not null,
    held bigint not null,
    warned integer not null,
    constraint credit_key primary key (account_id, period_start),
    constraint credit_counts check (used >= 0 and held >= 0)
  )`,
  `create table usage (
    account_id text not null,
    key_id text not null,
    day bigint not null,
    class text not null,
    verifications bigint not null,
    cached bigint not null,
    credits bigint not null,
    constraint usage_key primary key (account_id, day, key_id, class)
  )`,
  `create table replay (
    key_id text not null,
    idempotency_key text not null,
    fingerprint text not null,
    status integer not null,
    answer text not null,
    created_at bigint not null,
    constraint replay_key primary key (key_id, idempotency_key)
  )`,
  'create index replay_age on replay (created_at)',
]

function historyStatements(db: Kysely<unknown>): string[] {
  // Rows are stored in the order in which pages of the history read them, and appended at one end
  // of each account. No query searches for an ID alone.
  const clustered = isPostgres(db) ? '' : 'without rowid'
  // PostgreSQL would use this index to read a page of one account. The condition is true for all
  // rows, and only queries that repeat it use the index.
  const onRequest = isPostgres(db) ? `where id <> ''` : ''
  return [
    `create table verification (
      id text not null,
      account_id text not null,
      key_id text not null,
      email text not null,
      valid integer not null,
      deliverable integer not null,
      risk_level text not null,
      reason text not null,
      class text not null,
      cached integer not null,
      source text not null,
      job_id text,
      sandbox integer not null,
      created_at bigint not null,
      constraint verification_key primary key (account_id, sandbox, created_at, id)
    ) ${clustered}`,
    `create index verification_age on verification (created_at) ${onRequest}`,
  ]
}

const WEBHOOKS = [
  `create table event (
    id text primary key,
    account_id text not null,
    kind text not null,
    body text not null,
    created_at bigint not null
  )`,
  'create index event_age on event (created_at)',
  `create table webhook (
    id text primary key,
    account_id text not null,
    url text not null,
    events text not null,
    active integer not null,
    description text,
    secret text not null,
    secret_hint text not null,
    created_at bigint not null,
    updated_at bigint not null,
    disabled_reason text,
    previous_secret text,
    previous_until bigint,
    failing_since bigint,
    deleted_at bigint,
    disabled_code text
  )`,
  'create index webhook_account on webhook (account_id)',
  `create table delivery (
    id text primary key,
    event_id text not null,
    webhook_id text not null,
    state text not null,
    attempt integer not null,
    due_at bigint not null,
    created_at bigint not null,
    kind text default '' not null,
    "trigger" text default 'scheduled' not null,
    status_code integer,
    duration_ms integer,
    error text,
    expires_at bigint,
    error_code text
  )`,
  // The delivery log, with or without a state filter. With kind in the index, a filter by kind
  // reads no rows.
  'create index delivery_webhook on delivery (webhook_id, created_at, id, kind)',
  'create index delivery_state on delivery (webhook_id, state, created_at, id, kind)',
  // Open deliveries in the order in which they are sent. Without state in the index, SQLite would
  // read the row to check the condition.
  `create index delivery_due on delivery (webhook_id, due_at, created_at, id, state)
    where state in ('pending', 'retry_scheduled')`,
  'create index delivery_event on delivery (event_id)',
  'create index delivery_expiry on delivery (expires_at) where expires_at is not null',
  `create table attempt (
    delivery_id text not null,
    number integer not null,
    "trigger" text not null,
    url text not null,
    started_at bigint not null,
    duration_ms integer not null,
    status_code integer,
    headers text,
    excerpt text,
    error text,
    error_code text,
    constraint attempt_key primary key (delivery_id, number)
  )`,
  `create table notice (
    webhook_id text primary key,
    account_id text not null,
    failed_events bigint not null,
    last_error text,
    disabled_reason text,
    due_at bigint,
    sent_at bigint
  )`,
  'create index notice_due on notice (due_at, webhook_id) where due_at is not null',
]

/** State that several processes share. */
const CLUSTER = [
  `create table member (
    id text primary key,
    role text not null,
    name text not null,
    version text not null,
    egresses text not null,
    joined_at bigint not null,
    seen_at bigint not null
  )`,
  `create table hold (
    member_id text not null,
    account_id text not null,
    period_start bigint not null,
    amount bigint not null,
    constraint hold_key primary key (member_id, account_id, period_start)
  )`,
  `create table pace (
    operator text not null,
    egress text not null,
    state text not null,
    changed_at bigint not null,
    constraint pace_key primary key (operator, egress)
  )`,
  'create index pace_age on pace (changed_at)',
  `create table catch_all (
    domain text primary key,
    catch_all integer not null,
    keep_until bigint not null
  )`,
  'create index catch_all_expiry on catch_all (keep_until)',
  `create table bucket (
    "key" text primary key,
    used bigint not null,
    per_ms bigint not null,
    ends_at bigint not null
  )`,
  'create index bucket_end on bucket (ends_at)',
  `create table setting (
    name text primary key,
    value text not null
  )`,
]
