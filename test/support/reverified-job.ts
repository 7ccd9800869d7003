import type { Database } from '../../src/db/database.ts'
import { sandboxResult } from '../../src/engine/sandbox.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { type Job, readJob } from '../../src/jobs/job-store.ts'
import { commitBatch } from '../../src/jobs/results/commit-batch.ts'
import { countedRandom } from './random.ts'

/** Stores results for the queued rows of a job as a worker does. */
export async function verifyQueued(database: Database, jobId: string): Promise<Job> {
  await startJob(database, jobId)
  const rows = await database.db
    .selectFrom('item')
    .select(['position', 'text', 'copies'])
    .where('job_id', '=', jobId)
    .where('state', '=', 'queued')
    .execute()
  const results = rows.map(({ position, text, copies }) => ({
    position,
    copies,
    result: sandboxResult(database.clock, text),
  }))
  const deps = {
    database,
    ledger: null,
    random: countedRandom(),
    baseUrl: 'https://ev.test',
  }
  await commitBatch(deps, { changes: new Map([[jobId, [{ results }]]]), answers: new Map() })
  return readJob(database, jobId)
}
