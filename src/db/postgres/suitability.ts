import { type Kysely, sql } from 'kysely'
import type { Schema } from '../schema.ts'

/** The server works, but ev cannot use it. */
export class UnsuitableServer extends Error {
  /** The recommended action, a sentence. */
  readonly remedy: string

  constructor(reason: string, remedy: string) {
    super(reason)
    this.remedy = remedy
  }
}

/**
 * Throws UnsuitableServer unless the encoding is UTF8. SQL_ASCII stores any bytes, but has no
 * characters.
 */
export async function checkEncoding(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ server_encoding: string }>`show server_encoding`.execute(db)
  const encoding = rows[0]?.server_encoding
  if (encoding === 'UTF8') return
  throw new UnsuitableServer(
    `its encoding is ${encoding}, and ev needs UTF8`,
    "Create another one with: create database NAME encoding 'UTF8' template template0; then set it with --database.",
  )
}

/**
 * Throws UnsuitableServer if a pooler runs the statements of both pools, which have connections of
 * their own, in the same server process. Prepared statements, session settings and LISTEN would get
 * lost or collide.
 */
export async function checkPooling(one: Kysely<Schema>, other: Kysely<Schema>): Promise<void> {
  const queryOf = (db: Kysely<Schema>) => (text: string) => sql.raw<ProcessRow>(text).execute(db)
  if (await sharesProcess(queryOf(one), queryOf(other)))
    throw new UnsuitableServer(POOLED, USE_SESSION_MODE)
}

export const POOLED = 'a pooler shares its connections between transactions'
export const USE_SESSION_MODE =
  'Set pool_mode = session in PgBouncer, or connect to the server directly.'

/** A pooler may serve other clients in between, which change the process of a connection. */
const ROUNDS = 3

type ProcessRow = { readonly id: number }
/** Runs a statement over one connection. */
type ProcessQuery = (text: string) => Promise<{ readonly rows: readonly ProcessRow[] }>

/**
 * Whether two connections ever use the same server process, or one uses several, as it does while
 * other clients of the pooler are busy.
 */
export async function sharesProcess(one: ProcessQuery, other: ProcessQuery): Promise<boolean> {
  const ofOne = new Set<number | undefined>()
  const ofOther = new Set<number | undefined>()
  for (let round = 0; round < ROUNDS; round++) {
    ofOne.add((await one(PROCESS_ID)).rows[0]?.id)
    ofOther.add((await other(PROCESS_ID)).rows[0]?.id)
  }
  return ofOne.size > 1 || ofOther.size > 1 || [...ofOne].some(id => ofOther.has(id))
}

const PROCESS_ID = 'select pg_backend_pid() as id'
