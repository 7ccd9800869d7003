import { isoTime, pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'

/** Why rows of a job wait. */
export const WAIT_REASONS = [
  ...(['dns_check', 'no_worker', 'queued', 'refused', 'throttled', 'unknown_users'] as const),
  ...(['asked_again_later', 'postponed', 'pace'] as const),
]

export type WaitReason = (typeof WAIT_REASONS)[number]

/** Rows of a job that wait for the same cause. */
export type Wait = {
  /** Null if the cause is not an operator. */
  readonly operator: string | null
  readonly rows: number
  readonly reason: WaitReason
  /** Earliest time of the next attempt, epoch ms; null if it is not known. */
  readonly until: number | null
  /** Number of other lists with rows for this operator, which take turns with this one. */
  readonly otherLists: number
  /** The failure of the DNS check. */
  readonly failure?: string
}

/** Describes a wait in one sentence; `timeText` formats its time. */
export function describeWait(wait: Wait, timeText: (at: number) => string = isoTime): string {
  const time = wait.until === null ? '' : timeText(wait.until)
  const cause = describeCause(wait).replace('{time}', time)
  if (wait.operator === null) return cause
  return `${pluralize(wait.rows, 'address')} at ${sanitizeText(wait.operator)}: ${cause}`
}

function describeCause({ reason, failure, otherLists }: Wait): string {
  if (reason === 'dns_check' && failure !== undefined) return failure
  if (reason !== 'pace' || otherLists === 0) return CAUSES[reason]
  return `they are probed at the rate that the operator accepts, in turn with ${pluralize(otherLists, 'other list')}.`
}

const CAUSES: Readonly<Record<WaitReason, string>> = {
  dns_check: 'The DNS server fails its check. Next check at {time}.',
  no_worker: 'No worker is running. The list continues when one starts.',
  queued: 'The list starts when a worker is free.',
  refused: 'the operator blocks this service. Next attempt at {time}.',
  throttled: 'the operator asked to slow down. Next attempt at {time}.',
  unknown_users:
    'the operator rejected many recipients in a row as unknown. Next attempt at {time}.',
  asked_again_later: 'the mail server deferred them. Next attempt at {time}.',
  postponed: 'the next attempt is due at {time}.',
  pace: 'they are probed at the rate that the operator accepts.',
}
