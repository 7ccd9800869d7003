import { sql } from 'kysely'
import { type Database, type Trx, write, writeAsyncCommit } from '../db/database.ts'
import { createExpiry } from '../db/paging.ts'
import { jsonRows } from '../db/sql-dialect.ts'
import {
  type StoredWitness,
  WITNESS_MS,
  WITNESSES_MAX,
  type WitnessStore,
} from '../engine/probe/witnesses.ts'
import { BackgroundWriter, type ServerDataDeps } from './background-writer.ts'
import { CLUSTER_LOG } from './telemetry.ts'

const DELETED_MAX = 10_000

/** Witnesses in the table `witness`, for later processes on the database. */
interface StoredWitnesses extends WitnessStore {
  /** Writes pending witnesses. */
  close(): Promise<unknown>
}

export function openWitnesses({ database, log, network }: ServerDataDeps): StoredWitnesses {
  const writer = new BackgroundWriter<StoredWitness>({
    database,
    log,
    failed: CLUSTER_LOG.witnessesNotWritten,
    keyOf: ({ server }) => server,
    put: witnesses => putWitnesses(database, network, witnesses),
    async deleteExpired() {
      const before = database.clock.now() - WITNESS_MS
      await write(database, trx => deleteWitnessesBefore(trx, before, DELETED_MAX))
    },
  })
  return {
    load: () => getWitnesses(database, network),
    put: witness => writer.add(witness),
    close: () => writer.close(),
  }
}

async function getWitnesses(
  { reader, clock }: Database,
  network: string | null,
): Promise<StoredWitness[]> {
  const { rows } = await sql<StoredWitness>`
    select server, recipient, accepted_at as "acceptedAt" from witness
    where network = ${network ?? ''} and accepted_at > ${clock.now() - WITNESS_MS}
    order by accepted_at desc limit ${WITNESSES_MAX}`.execute(reader)
  return rows.map(row => ({ ...row, acceptedAt: Number(row.acceptedAt) }))
}

/** Sorted by key, so that concurrent writers cannot deadlock. */
async function putWitnesses(
  database: Database,
  network: string | null,
  witnesses: readonly StoredWitness[],
): Promise<void> {
  const rows = witnesses
    .map(one => ({ ...one, network: network ?? '' }))
    .sort((a, b) => (a.server < b.server ? -1 : 1))
  await writeAsyncCommit(database, db =>
    sql`
      insert into witness (network, server, recipient, accepted_at)
      select value ->> 'network', value ->> 'server', value ->> 'recipient',
        cast(value ->> 'acceptedAt' as bigint)
      from ${jsonRows(db, rows)} where true
      on conflict (network, server) do update
      set recipient = excluded.recipient, accepted_at = excluded.accepted_at`.execute(db),
  )
}

/** Deletes witnesses that were accepted before a time, epoch ms. */
export const deleteWitnessesBefore = createExpiry(
  'witness',
  ['network', 'server'],
  before => sql`accepted_at < ${before}`,
)

/** Returns the recipients with a lower-case address, as they are stored. */
export async function findWitnesses({ db }: Database, address: string): Promise<string[]> {
  const { rows } = await sql<{ recipient: string }>`
    select distinct recipient from witness where lower(recipient) = ${address}`.execute(db)
  return rows.map(({ recipient }) => recipient)
}

export async function deleteWitnesses(trx: Trx, recipients: readonly string[]): Promise<void> {
  if (recipients.length > 0)
    await trx.deleteFrom('witness').where('recipient', 'in', recipients).execute()
}
