import { onAbort } from '../../platform/abort.ts'
import { errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import { withDeadline } from '../deadline.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import { fromFailedProbe, fromProbe } from '../verdict/build-result.ts'
import type { Result } from '../verdict/verdict.ts'
import type { ProbeTask } from './prepare.ts'
import { ProbeGroup, type ProbeGroupDeps } from './probe-group.ts'
import type { ProbeListener } from './probe-listener.ts'
import { DEADLINE_EXCEEDED } from './probe-outcome.ts'

/** Time reserved before the deadline, so that sessions can report what they know. */
const DEADLINE_MARGIN_MS = 20

type SingleProbe = {
  /** Resolves at the reply to QUIT, while the connection is still closing. Never rejects. */
  readonly result: Promise<Result>
  /** Resolves when nothing of the probe runs any more. Never rejects. */
  readonly ended: Promise<void>
}

/**
 * Probes one address for a waiting caller. If the operator blocks one egress, another one tries in
 * the remaining time.
 */
export function probeSingle(
  deps: ProbeGroupDeps,
  task: ProbeTask,
  options: {
    /** The DNS lookup counts toward the limit. */
    readonly limitMs: number
    readonly dialogue: boolean
    readonly listener: ProbeListener | null
    readonly closing: AbortSignal
  },
): SingleProbe {
  const { clock, egressPool, log } = deps
  const { limitMs, dialogue, listener, closing } = options
  const remainingMs = () => limitMs - (clock.monotonicNow() - task.startedAt)
  const leftMs = remainingMs() - DEADLINE_MARGIN_MS
  const { signal, done } = withDeadline(clock, leftMs, [closing])
  let isDone = false
  let ended = Promise.resolve()
  const result = new Promise<Result>(resolve => {
    const finish = (found: Result) => {
      if (isDone) return
      isDone = true
      resolve(found)
      // Only the close remains: it is short, so neither the deadline nor `closing` interrupts it.
      done()
    }
    const fail = (error: unknown) => {
      if (isDone) return
      writeLog(log, ENGINE_LOG.verificationFailed, { error: errorMessage(error) })
      finish(fromFailedProbe(clock, task, error))
    }
    // Do not wait for code that ignores the signal.
    onAbort(signal, () => {
      const marginMs = Math.min(DEADLINE_MARGIN_MS, Math.max(0, remainingMs()))
      clock.after(marginMs, () => {
        if (isDone) return
        try {
          finish(timedOut(deps, task))
        } catch (error) {
          fail(error)
        }
      })
    })
    const group = new ProbeGroup(
      deps,
      [task],
      { probed: (_, outcome) => finish(outcome.result), later: () => {} },
      {
        signal,
        drain: signal,
        single: true,
        urgent: true,
        timeoutMs: leftMs,
        dialogue,
        // The listener receives nothing after the result.
        listener: listener && notifyUnless(() => isDone, listener),
      },
    )
    ended = Promise.resolve()
      .then(() => group.run(egressPool.own.primaryFor(task.operator.name)))
      .catch(fail)
      .finally(done)
  })
  return { result, ended }
}

/** Returns the result of a task whose time limit has passed. */
export function timedOut({ clock, egressPool }: ProbeGroupDeps, task: ProbeTask): Result {
  const egress = egressPool.own.primaryFor(task.operator.name)
  return fromProbe(clock, task, {
    answer: DEADLINE_EXCEEDED,
    catchAll: task.exchangers[0].catchAll,
    egress,
    host: null,
    ip: null,
    tls: false,
    connectMs: null,
    asked: true,
    dialogue: null,
  })
}

const notifyUnless = (isDone: () => boolean, { onCall, onLine }: ProbeListener): ProbeListener => ({
  onCall: call => void (isDone() || onCall(call)),
  onLine: line => void (isDone() || onLine(line)),
})
