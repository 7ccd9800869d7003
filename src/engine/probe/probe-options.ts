import type { ProbeListener } from './probe-listener.ts'

/**
 * Takes what becomes of the targets of a probe: each is passed to one method, once. A method that
 * throws ends the probe, no other call follows, and the probe rejects with an error that names it.
 */
export interface ProbeSink<Target, Outcome> {
  /** Takes the outcome of a target, as soon as it is certain. */
  probed(target: Target, outcome: Outcome): void
  /**
   * Takes a target of a list in place of `probed`: probe it again in `delayMs`, because many
   * connections wait for the same mail server, or because a limit or a suspension of this process
   * made the probe fail.
   */
  later(target: Target, delayMs: number): void
  /**
   * Takes targets of a list in place of `probed` that their connection is not expected to reach before
   * its limit of refusals, while another connection may be opened for them. If omitted, they are
   * probed one connection after another.
   */
  readonly returned?: ((targets: readonly Target[]) => void) | undefined
}

/** How to probe targets. All layers get the same object. */
export type ProbeOptions = {
  /** Aborts every session immediately. */
  readonly signal: AbortSignal
  /**
   * Lets the transaction in flight finish and sends QUIT; the remaining targets get an outcome
   * without being probed. It aborts whenever `signal` does.
   */
  readonly drain: AbortSignal
  /**
   * One address that a caller waits for. Its random recipient leaves in the same write as the real
   * one, no connection slot is needed, and it waits for each permit until `signal` aborts.
   */
  readonly single: boolean
  /** Several addresses that a caller waits for: like a single one, they need no connection slot. */
  readonly urgent: boolean
  /** The longest pause to wait out, in ms; after a longer one the rest is returned as deferred. */
  readonly timeoutMs: number
  /** Whether outcomes have the lines of the dialogue. */
  readonly dialogue: boolean
  /** Receives dial attempts and dialogue lines as they happen. */
  readonly listener: ProbeListener | null
}
