import type { Fleet } from '../../../probe/egress/fleet.ts'
import type { Pace } from '../../../probe/pace.ts'
import type { Prober } from '../../../probe/probe.ts'
import type { OperatorStatus, OperatorsStatus } from '../source.ts'

export type OperatorsParts = {
  readonly fleet: Fleet
  readonly smtpPort: number
  /** What people call an operator. */
  readonly titleOf: (operator: string) => string
}

/** As many as somebody reads; a service that verifies much has asked thousands. */
export const OPERATORS_SHOWN = 50

/** The operators that were asked lately: those in trouble first, then the busiest. */
export function operatorsStatus({ fleet, smtpPort, titleOf }: OperatorsParts): OperatorsStatus {
  const probers = fleet.names.map(name => fleet.prober(name))
  const { first, left } = firstOf(probers)
  return {
    egresses: probers.map(({ egressName: name, closedSince }) => {
      return { name, closedSince, port: smtpPort }
    }),
    shown: first.map(({ operator, pace, egress }) => ({
      ...pace.status(operator),
      ...{ egress, title: titleOf(operator) },
      othersAsk: fleet.willing(operator).some(name => name !== egress),
    })),
    left,
  }
}

type Ranked = {
  readonly urgency: number
  readonly operator: string
  readonly pace: Pace
  readonly egress: string
}

/** There may be 20,000 of each egress, which are gone through in passing: no list of all is made or sorted. */
function firstOf(probers: readonly Prober[]): { first: readonly Ranked[]; left: number } {
  const first: Ranked[] = []
  let left = 0
  for (const prober of probers) {
    for (const [operator, pace] of prober.paces()) {
      const { urgency } = pace
      if (first.length === OPERATORS_SHOWN && urgency <= (first.at(-1)?.urgency ?? 0)) {
        left++
        continue
      }
      const at = first.findIndex(one => one.urgency < urgency)
      const ranked = { urgency, operator, pace, egress: prober.egressName }
      first.splice(at === -1 ? first.length : at, 0, ranked)
      if (first.length > OPERATORS_SHOWN) left += first.splice(OPERATORS_SHOWN).length
    }
  }
  return { first, left }
}

/** A refusal that still holds, and that nobody else asks around. */
export const isShutOut = ({ refusal, othersAsk }: OperatorStatus, now: number): boolean =>
  refusal !== null && refusal.until > now && !othersAsk
