import { EgressAbsence } from '../../cluster/egress-absence.ts'
import { type ClusterTimings, DEFAULT_CLUSTER_TIMINGS } from '../../cluster/membership.ts'
import type { Database } from '../../db/database.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import type { Random } from '../../platform/random.ts'
import { claimUnpinning, overduePinnedItems, unpinItems } from '../item-claims.ts'
import { JOB_LOG } from '../telemetry.ts'

type UnpinDeps = {
  readonly database: Database
  readonly egressPool: EgressPool
  /** Returns the names of the egresses of live members. */
  readonly egresses: () => readonly string[]
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/**
 * Lets any egress probe the items that are bound to an egress which no longer serves their operator,
 * or which no member of the cluster has: those that it has tried after `absentMs`, because a server
 * that greylists expects it again, and the others at once.
 */
export function startUnpinning(deps: UnpinDeps): Loop {
  const { database, egressPool, egresses, random, log } = deps
  const { timings = DEFAULT_CLUSTER_TIMINGS } = deps
  const { unpinMinMs, unpinSpreadMs, overdueMs, absentMs } = timings
  const clock = database.steadyClock
  const absence = new EgressAbsence(clock)
  return startLoop({
    failed: JOB_LOG.unpinFailed,
    clock: database.clock,
    log,
    everyMs: () => unpinMinMs + random.below(unpinSpreadMs),
    async run() {
      absence.note(egresses())
      if (!(await claimUnpinning(database, unpinMinMs))) return
      for (const item of await overduePinnedItems(database, clock.now() - overdueMs)) {
        const { operator, egress } = item
        if (absence.isPresent(egress)) {
          if (!egressPool.ranked(operator).includes(egress)) await unpinItems(database, item)
          continue
        }
        const isGone = absence.absentForMs(egress) >= absentMs
        await unpinItems(database, { ...item, isUntried: !isGone })
      }
    },
  })
}
