import type { Result, Signal, Verdict } from '../verdict/verdict.ts'

/**
 * Points that each signal adds to the confidence that an address is not deliverable. Signals
 * are hints about a domain or a person, so none of them counts as much as a reply of a server.
 */
export const SIGNAL_SHIFTS = {
  /** The domain sends no mail and rejects mail in its name, but has a mail exchanger. */
  noMailPolicy: 15,
  /** Senders must use TLS: the mail of the domain is maintained. */
  mtaSts: -5,
  parking: 20,
  typoNetwork: 20,
  /** The owner of the address confirmed it when the profile was created. */
  gravatar: -15,
} as const

/** All signals together change the confidence by at most this. */
export const SHIFT_MAX = 20

/** From this sum on, the risk of a catch-all address is high. */
export const HIGH_RISK_SHIFT_MIN = 15

/** Whether signals apply: only where the mail server left open whether the mailbox exists. */
export const isOpen = ({ reason, risk }: Verdict): boolean =>
  reason === 'catch_all' || (risk === 'unknown' && reason !== 'unexpected_error')

/**
 * Applies signals to a result. They change the confidence, and the risk of a catch-all address, but
 * never `valid`, `deliverable` or the reason. A pure function.
 */
export function applySignals(result: Result, signals: readonly Signal[]): Result {
  const { verdict, evidence } = result
  if (!isOpen(verdict)) return result
  const sum = signals.reduce((total, { shift }) => total + shift, 0)
  const shift = Math.min(SHIFT_MAX, Math.max(-SHIFT_MAX, sum))
  const confidence = Math.min(100, Math.max(0, verdict.confidence + shift))
  const isHigh = verdict.reason === 'catch_all' && shift >= HIGH_RISK_SHIFT_MIN
  return {
    ...result,
    verdict: { ...verdict, confidence, ...(isHigh ? { risk: 'high' as const } : {}) },
    evidence: { ...evidence, signals },
  }
}
