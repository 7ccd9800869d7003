import { type SimulatedHost, filledIn, SessionState } from './session-state.ts'
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { EvError } from '../../platform/error.ts'
import type { Line } from './conversation.ts'
import type { Caller, Ending, Rule } from './rule.ts'

/**
 * Speaks for a host through nodemailer's smtp-server: an implementation that others wrote, and so a judge
 * of whether our client speaks SMTP or only what our own server takes. It can do no tricks, greets
 * 100 ms after the connection, and sends each reply by itself.
 */
export function libraryEngine(host: SimulatedHost): (line: Line, caller: Caller) => Ending {
  const sessions = new Map<string, SessionState>()
  const callers = new Map<string, Caller>()
  const server = new SMTPServer({
    ...optionsFor(host),
    logger: commandWatcher((verb, id) => {
      host.tally.command(verb)
      if (verb === 'QUIT') callers.get(id)?.over()
    }),
    onConnect(session, done) {
      const status = known(sessions, session.id)
      decide(host, 'CONNECT', status, done)
    },
    onMailFrom({ address }, session, done) {
      const status = known(sessions, session.id)
      status.from = address
      status.secure = session.secure
      decide(host, 'MAIL', status, error => {
        if (!error) status.advance('MAIL')
        done(error)
      })
    },
    onRcptTo({ address }, session, done) {
      const status = known(sessions, session.id)
      status.asked(address)
      decide(host, 'RCPT', status, done)
    },
    onSecure(_socket, _session, done) {
      host.tally.tlsSessions += 1
      done()
    },
  })
  // A broken connection is the client's affair, and counted elsewhere.
  server.on('error', () => {})
  return (line, caller) => {
    const id = `${host.name}#${caller.connection}`
    callers.set(id, caller)
    sessions.set(id, new SessionState(host, caller))
    line.once('close', () => {
      callers.delete(id)
      sessions.delete(id)
    })
    // The library uses of a socket what a far one has too.
    server.connect(line as unknown as Socket, { id, remoteAddress: caller.client })
    return line
  }
}

/** What the library must be told so that it offers what the host offers. */
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

/** The library tells of commands only in its log. */
function commandWatcher(
  heard: (verb: string, id: string) => void,
): NonNullable<SMTPServerOptions['logger']> {
  const quiet = () => {}
  const debug = (entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return
    if (!('tnx' in entry) || entry.tnx !== 'command') return
    if ('command' in entry && 'cid' in entry) heard(String(entry.command), String(entry.cid))
  }
  return { level: quiet, trace: quiet, debug, info: quiet, warn: quiet, error: quiet, fatal: quiet }
}

function known(sessions: ReadonlyMap<string, SessionState>, id: string): SessionState {
  const status = sessions.get(id)
  if (status === undefined) throw new EvError('internal', `No session ${id} in the mail world`)
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
  const answer = () => done(refusal(rule, status))
  if (waitMs > 0) setTimeout(answer, waitMs)
  else answer()
}

/** A reply as the library takes it; null where the rule grants. `checkScenario` has seen to it that there is one. */
function refusal(rule: Rule | undefined, status: SessionState): Error | null {
  if (rule?.reply === undefined || rule.reply.startsWith('2')) return null
  const responseCode = Number(rule.reply.slice(0, 3))
  return Object.assign(new Error(filledIn(rule.reply.slice(4), status)), { responseCode })
}
