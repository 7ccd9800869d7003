import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import type { Random } from '../../platform/random.ts'
import type { Job } from '../job-store.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Queue } from '../../queue/queue.ts'
import type { UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import type { WorkerTimings } from './worker-timings.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Membership } from '../../cluster/membership.ts'


export type WorkerDeps = {
  readonly database: Database
  readonly log: Log
  readonly random: Random
  /** One for all jobs that ask mail servers, as they share its paces; another for simulated ones, which ask none. */
  readonly engineFor: (job: Job) => Engine
  /** Names of those that addresses of lists are asked by; none: that is left to the others. */
  readonly egresses: readonly string[]
  /** Shared by all members of a cluster; of this process alone when left out. */
  readonly queue?: Queue
  /** Those that work on the same jobs; null, or left out: this process alone does. */
  readonly cluster?: WorkerMembership | null
  /** Conversations at the same time, over all operators. */
  readonly concurrency: number
  /** How long a greylisted item waits, in ms; null: what the server says. */
  readonly greylistDelayMs: number | null
  /** False: what should be asked again later ends as it is. */
  readonly wait: (job: Job) => boolean
  /** Where verifications of accounts are entered; null: there are no accounts here. */
  readonly ledger: UsageLedger | null
  /** For the addresses in events; without a slash at its end. */
  readonly baseUrl: string
  /** False: where results cannot be written, work on their jobs ends. Left out: that is tried until it succeeds. */
  readonly keepsTrying?: boolean
  readonly timings?: WorkerTimings
  /** Requests that go first; null, or left out: there are none. */
  readonly priority?: Priority | null
  /** The job as it stands after a commit. */
  readonly onProgress?: (job: Job) => void
  /** Work on a job ended before its time: it was cancelled or deleted, or cannot be worked on. */
  readonly onFailure?: (jobId: string, error: unknown) => void
}

/** What a crew needs to know of how this process stands among those that share its database. */
export type WorkerMembership = Pick<Membership, 'id' | 'onLost' | 'onSilent'>

