import type { UsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import type { Database } from '../../src/db/database.ts'
import { sandboxResult } from '../../src/engine/sandbox.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { type Job, readJob } from '../../src/jobs/job-store.ts'
import { commitBatch } from '../../src/jobs/results/commit-batch.ts'
import { countedRandom } from './random.ts'

type VerifyOptions = {
  /** Maps an address to the one whose simulated result it gets. */
  readonly as?: Readonly<Record<string, string>>
  readonly ledger?: UsageLedger
}

/** Stores results for the queued rows of a job as a worker does. */
export async function verifyQueued(
  database: Database,
  jobId: string,
  { as = {}, ledger }: VerifyOptions = {},
): Promise<Job> {
  await startJob(database, jobId)
  const rows = await database.db
    .selectFrom('item')
    .select(['position', 'text', 'copies'])
    .where('job_id', '=', jobId)
    .where('state', '=', 'queued')
    .execute()
  const results = rows.map(({ position, text, copies }) => {
    const result = sandboxResult(database.clock, as[text] ?? text)
    return { position, copies, result: { ...result, email: text } }
  })
  const deps = {
    database,
    ledger: ledger ?? null,
    random: countedRandom(),
    baseUrl: 'https://ev.test',
  }
  await commitBatch(deps, { changes: new Map([[jobId, [{ results }]]]), answers: new Map() })
  return readJob(database, jobId)
}
