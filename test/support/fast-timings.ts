import { DEFAULT_TIMINGS, type Timings } from '../../src/compose/timings.ts'
import { DEFAULT_MCP_TIMINGS } from '../../src/mcp/backend.ts'
import { MINUTE } from '../../src/platform/clock.ts'

/**
 * Intervals of tens of milliseconds. Expiry times of members and connections stay long, because on
 * a busy machine a live member must never expire. Tests that wait for an expiry shorten them.
 * `monitorMs` and `heartbeatMs` have the minimum of pg-boss: 1 s and 10 s.
 */
export const FAST_TIMINGS: Timings = {
  queue: {
    ...DEFAULT_TIMINGS.queue,
    beatMs: 20,
    pollMs: 20,
    retryMs: 40,
    clearMs: 100,
    monitorMs: 1_000,
  },
  cluster: {
    ...DEFAULT_TIMINGS.cluster,
    beatMs: 30,
    pollMs: 30,
    retryMs: 30,
    overdueMs: 500,
    unpinMinMs: 50,
    unpinSpreadMs: 20,
  },
  rates: { ...DEFAULT_TIMINGS.rates, pollMs: 40, pollSoonMs: 15, pollIdleMs: 40, ticketMs: 400 },
  catchAll: { ...DEFAULT_TIMINGS.catchAll, batchMs: 20 },
  // On a busy machine no statement must reach its time limit.
  pool: { ...DEFAULT_TIMINGS.pool, connectMs: MINUTE, statementMs: MINUTE },
  worker: {
    ...DEFAULT_TIMINGS.worker,
    awaitedPollMs: 20,
    claimPollMs: 20,
    rejoinMs: 20,
    retryMs: 40,
    batchMs: 20,
    roundMs: 20,
    cancellationPollMs: 30,
    finishPollMs: 30,
  },
  deliveries: { ...DEFAULT_TIMINGS.deliveries, duePollMs: 20, retryMs: 40 },
  notices: DEFAULT_TIMINGS.notices,
  jobMails: DEFAULT_TIMINGS.jobMails,
  schedules: DEFAULT_TIMINGS.schedules,
  http: { pollMs: 20, progressMs: 20, mcp: DEFAULT_MCP_TIMINGS },
  retentionEveryMs: DEFAULT_TIMINGS.retentionEveryMs,
}
