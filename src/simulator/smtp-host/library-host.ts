import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type SmtpServer from 'smtp-server'
import type { SMTPServerOptions } from 'smtp-server'
import { EvError } from '../../platform/error.ts'
import type { Line } from './conversation.ts'
import type { Caller, DestroyableSession, Rule } from './rule.ts'
import { fillPlaceholders, SessionState, type SimulatedHost } from './session-state.ts'

/**
 * Serves a host with nodemailer's smtp-server. An independent implementation shows whether the
 * client speaks SMTP or only matches the simulator. It can only reply, greets 100 ms after the
 * connection, and sends each reply separately.
 */
export function libraryEngine(
  host: SimulatedHost,
): (line: Line, caller: Caller) => DestroyableSession {
  const sessions = new Map<string, SessionState>()
  const callers = new Map<string, Caller>()
  const { SMTPServer } = loadLibrary(host.name)
  const server = new SMTPServer({
    ...optionsFor(host),
    logger: commandWatcher((verb, id) => {
      host.tally.command(verb)
      if (verb === 'QUIT') callers.get(id)?.end()
    }),
    onConnect(session, done) {
      const status = findSession(sessions, session.id)
      decide(host, 'CONNECT', status, done)
    },
    onMailFrom({ address }, session, done) {
      const status = findSession(sessions, session.id)
      status.from = address
      status.secure = session.secure
      decide(host, 'MAIL', status, error => {
        if (!error) status.advance('MAIL')
        done(error)
      })
    },
    onRcptTo({ address }, session, done) {
      const status = findSession(sessions, session.id)
      status.addRecipient(address)
      decide(host, 'RCPT', status, done)
    },
    onSecure(_socket, _session, done) {
      host.tally.tlsSessions += 1
      done()
    },
  })
  // Connection errors are counted when the socket closes.
  server.on('error', () => {})
  return (line, caller) => {
    const id = `${host.name}#${caller.connection}`
    callers.set(id, caller)
    sessions.set(id, new SessionState(host, caller))
    line.once('close', () => {
      callers.delete(id)
      sessions.delete(id)
    })
    // The library uses only members that DelayedSocket also has.
    server.connect(line as unknown as Socket, { id, remoteAddress: caller.client })
    return line
  }
}

/** Loads the library, an optional dependency. */
function loadLibrary(hostName: string): typeof SmtpServer {
  try {
    return createRequire(import.meta.url)('smtp-server')
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    throw new EvError(
      'usage',
      `The host "${hostName}" of the scenario needs a package. Run: npm install smtp-server`,
    )
  }
}

/** Returns the options that make the library offer the extensions of the host. */
function optionsFor(host: SimulatedHost): SMTPServerOptions {
  const offers = (name: string) => host.extensions.includes(name)
  return {
    name: host.name,
    authOptional: true,
    disabledCommands: host.behavior.starttls === true ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    hidePIPELINING: !offers('PIPELINING'),
    hideSMTPUTF8: !offers('SMTPUTF8'),
    maxAllowedUnauthenticatedCommands: false,
    ...(host.behavior.starttls === true ? host.certificate() : {}),
  }
}

/** Creates a logger that observes commands, which the library reports only in its log. */
function commandWatcher(
  onCommand: (verb: string, id: string) => void,
): NonNullable<SMTPServerOptions['logger']> {
  const ignore = () => {}
  const debug = (entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return
    if (!('tnx' in entry) || entry.tnx !== 'command') return
    if ('command' in entry && 'cid' in entry) onCommand(String(entry.command), String(entry.cid))
  }
  return {
    level: ignore,
    trace: ignore,
    debug,
    info: ignore,
    warn: ignore,
    error: ignore,
    fatal: ignore,
  }
}

function findSession(sessions: ReadonlyMap<string, SessionState>, id: string): SessionState {
  const status = sessions.get(id)
  if (status === undefined) throw new EvError('internal', `The simulator has no session ${id}`)
  return status
}

function decide(
  host: SimulatedHost,
  verb: string,
  status: SessionState,
  done: (error?: Error | null) => void,
): void {
  const rule = host.rules.find(verb, status)
  const waitMs = (rule?.afterMs ?? 0) + (host.behavior.replyMs ?? 0)
  const respond = () => done(toError(rule, status))
  if (waitMs > 0) setTimeout(respond, waitMs)
  else respond()
}

/**
 * Converts a rejection to an error of the library; null accepts. `checkScenario` ensures a reply.
 */
function toError(rule: Rule | undefined, status: SessionState): Error | null {
  if (rule?.reply === undefined || rule.reply.startsWith('2')) return null
  const responseCode = Number(rule.reply.slice(0, 3))
  return Object.assign(new Error(fillPlaceholders(rule.reply.slice(4), status)), { responseCode })
}
