import type { Engine } from './engine.ts'

/** Why this machine cannot verify addresses now. */
export type MachineProblem = {
  readonly cause: 'dns' | 'smtp'
  /** A clause for people: untrusted text of servers, sanitized. */
  readonly detail: string
  /** Since when, epoch ms; null if it is not known. */
  readonly since: number | null
}

/** Whether this machine can verify addresses now. */
export type MachineStatus = {
  /** `failing` if there is a problem, `checking` until the first check of the DNS server ends. */
  readonly state: 'checking' | 'ready' | 'failing'
  /** Whether the DNS server passed its last check. */
  readonly dns: 'checking' | 'ok' | 'failing'
  /** Whether mail servers can be reached, as far as it is known. */
  readonly smtp: 'ok' | 'failing'
  readonly problems: readonly MachineProblem[]
}

type MachineStatusOptions = {
  readonly smtpPort: number
  /** Returns why the last check of the port of an egress failed; null if it passed or did not run. */
  readonly findPortFailure: (egress: string) => string | null
}

/**
 * Reads whether this machine can verify addresses, from what the engine knows. Starts a check of the
 * DNS server that is due and does not wait for it: without verifications nothing else would query
 * the DNS, and a failed check would never be repeated.
 */
export function readMachineStatus(engine: Engine, options: MachineStatusOptions): MachineStatus {
  const dnsProblem = findDnsProblem(engine)
  // Without DNS the check of the port fails too, which says nothing about the port.
  const findPortFailure = dnsProblem === null ? options.findPortFailure : () => null
  const smtpProblem = findSmtpProblem(engine, { ...options, findPortFailure })
  const problems = [dnsProblem, smtpProblem].filter(problem => problem !== null)
  const isChecked = engine.resolverCheck === null || engine.resolverCheck.made > 0
  const state = isChecked ? 'ready' : 'checking'
  return {
    state: problems.length > 0 ? 'failing' : state,
    dns: dnsProblem !== null ? 'failing' : isChecked ? 'ok' : 'checking',
    smtp: smtpProblem === null ? 'ok' : 'failing',
    problems,
  }
}

function findDnsProblem({ resolverCheck }: Engine): MachineProblem | null {
  resolverCheck?.startIfDue()
  const failure = resolverCheck?.failure ?? null
  return failure === null ? null : { cause: 'dns', detail: failure.detail, since: null }
}

/** With several egresses, each must fail: one that works takes over. */
function findSmtpProblem(
  { egressPool }: Engine,
  { smtpPort, findPortFailure }: MachineStatusOptions,
): MachineProblem | null {
  const failures = egressPool.names.map((name): MachineProblem | null => {
    const { closedSince, hasConnected, isIntercepted } = egressPool.prober(name)
    if (closedSince !== null) {
      const detail = isIntercepted
        ? `something on the network answers on port ${smtpPort} instead of the mail servers`
        : `no mail server can be reached on port ${smtpPort}`
      return { cause: 'smtp', detail, since: closedSince }
    }
    // The engine itself knows the state of a port that it has used.
    const detail = hasConnected ? null : findPortFailure(name)
    return detail === null ? null : { cause: 'smtp', detail, since: null }
  })
  return failures.every(failure => failure !== null) ? (failures[0] ?? null) : null
}
