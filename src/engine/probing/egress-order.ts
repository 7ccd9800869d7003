import type { ProbeResult } from '../probe/mx-group-probe.ts'
import { type HostAttempts, mxHostsFor } from './mx-hosts.ts'
import type { ProbeTask } from './prepare.ts'

/** Whom an inquiry is to be asked of now, whom after that, and what was heard before. */
export type EgressOrder = {
  readonly task: ProbeTask
  readonly at: HostAttempts
  readonly left: readonly HostAttempts[]
  readonly before: ProbeResult | null
}

/** The first turn of an inquiry. */
export function firstEgressOrder(task: ProbeTask): EgressOrder {
  const [at, ...left] = mxHostsFor(task.exchangers, task.accepted)
  return { task, at, left, before: null }
}

/** The inquiry as these exchangers are asked it. */
export function toProbeTarget({ task, at: { operator, route, catchAll } }: EgressOrder): ProbeTask {
  if (task.exchangers.length === 1) return task
  const isBackup = operator.name !== task.operator.name
  return { ...task, route, catchAll, isBackup, sharesLimits: true }
}
