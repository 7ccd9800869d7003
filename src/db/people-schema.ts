import { type Kysely, sql } from 'kysely'

/** Adds the people of accounts, and their names to the audit log. */
export async function addPeople(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

/** Adds the identities of people at the identity provider. */
export async function addIdentities(db: Kysely<unknown>): Promise<void> {
  await sql`alter table person add column oidc_issuer text`.execute(db)
  await sql`alter table person add column oidc_subject text`.execute(db)
  await sql`create unique index person_identity on person (oidc_issuer, oidc_subject, account_id)
    where oidc_subject is not null`.execute(db)
}

/** Adds the second factor that accounts require of their people. */
export async function addRequiredSecondFactor(db: Kysely<unknown>): Promise<void> {
  await sql`alter table account add column two_factor_required integer default 0 not null`.execute(
    db,
  )
}

const STATEMENTS = [
  `create table person (
    id text primary key,
    account_id text not null,
    name text not null,
    email text not null,
    role text not null,
    created_at bigint not null,
    invitation_hash text,
    invitation_expires_at bigint,
    password text,
    totp_secret text,
    totp_step bigint,
    last_signed_in_at bigint
  )`,
  'create unique index person_account on person (account_id, email)',
  'create index person_email on person (email)',
  `create unique index person_invitation on person (invitation_hash)
    where invitation_hash is not null`,
  `create table recovery_code (
    person_id text not null,
    hash text not null,
    constraint recovery_code_key primary key (person_id, hash)
  )`,
  'alter table audit add column person_id text',
  'alter table audit add column person_name text',
]
