import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { EgressProber } from '../../engine/probe/egress-prober.ts'
import type { RateController } from '../../engine/rate-control/controller.ts'
import type { OperatorStatus, OperatorsStatus } from './source.ts'

export type OperatorsDeps = {
  readonly egressPool: EgressPool
  readonly smtpPort: number
  /** What people call an operator. */
  readonly titleOf: (operator: string) => string
}

/** As many as somebody reads; a service that verifies much has asked thousands. */
export const OPERATORS_SHOWN = 50

/** The operators that were asked lately: those in trouble first, then the busiest. */
export function operatorsStatus({ egressPool, smtpPort, titleOf }: OperatorsDeps): OperatorsStatus {
  const probers = egressPool.names.map(name => egressPool.prober(name))
  const { first, left } = firstOf(probers)
  return {
    egresses: probers.map(({ egressName: name, closedSince }) => {
      return { name, closedSince, port: smtpPort }
    }),
    shown: first.map(({ operator, rate, egress }) => ({
      ...rate.status(operator),
      ...{ egress, title: titleOf(operator) },
      othersAsk: egressPool.availableFor(operator).some(name => name !== egress),
    })),
    left,
  }
}

type Ranked = {
  readonly urgency: number
  readonly operator: string
  readonly rate: RateController
  readonly egress: string
}

/** There may be 20,000 of each egress, which are gone through in passing: no list of all is made or sorted. */
function firstOf(probers: readonly EgressProber[]): { first: readonly Ranked[]; left: number } {
  const first: Ranked[] = []
  let left = 0
  for (const prober of probers) {
    for (const [operator, rate] of prober.rateControllers()) {
      const { urgency } = rate
      if (first.length === OPERATORS_SHOWN && urgency <= (first.at(-1)?.urgency ?? 0)) {
        left++
        continue
      }
      const at = first.findIndex(one => one.urgency < urgency)
      const ranked = { urgency, operator, rate, egress: prober.egressName }
      first.splice(at === -1 ? first.length : at, 0, ranked)
      if (first.length > OPERATORS_SHOWN) left += first.splice(OPERATORS_SHOWN).length
    }
  }
  return { first, left }
}

/** A refusal that still holds, and that nobody else asks around. */
export const isBlocked = ({ refusal, othersAsk }: OperatorStatus, now: number): boolean =>
  refusal !== null && refusal.until > now && !othersAsk
