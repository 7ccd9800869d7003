import type { Database } from '../../db/database.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import type { LedgerBatch } from './ledger-entries.ts'

const tallies = new WeakMap<Database, Map<Reason, number>>()

/** How often each reason was concluded by this process, without what was simulated: for who watches the service. */
export function verdictCounters(database: Database): Map<Reason, number> {
  const tally = tallies.get(database) ?? new Map<Reason, number>()
  tallies.set(database, tally)
  return tally
}

/** Counts what is entered; a commit that fails and is tried again counts twice. */
export function counterRows(database: Database, { entries, sandbox }: LedgerBatch): void {
  if (sandbox) return
  const tally = verdictCounters(database)
  for (const { result } of entries) {
    const { reason } = result.verdict
    tally.set(reason, (tally.get(reason) ?? 0) + 1)
  }
}
