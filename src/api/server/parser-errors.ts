import type { Socket } from 'node:net'
import { ApiError } from '../errors/api-error.ts'
import { keepNoLonger } from './connections.ts'
import type { ListenerDeps } from './listener.ts'
import { closeWith, faultOfParser, refuse } from './reject.ts'

/**
 * Answers what the parser could not read, once for each connection. Node's own 400, 408 and 431 lack the limit headers
 * that every response has (section 8 of the interface), and it closes at once: a client that still sends is reset.
 */
export function parserAnswers(deps: ListenerDeps): (error: Error, socket: Socket) => void {
  const answered = new WeakSet<Socket>()
  return (error, socket) => {
    const fault = faultOfParser(error)
    if (fault === null || !socket.writable) return void socket.destroy()
    // What is sent after it cannot be read either.
    if (answered.has(socket)) return
    answered.add(socket)
    answerParser(fault, socket, deps)
  }
}

function answerParser(fault: ApiError, socket: Socket, deps: ListenerDeps): void {
  const unanswered = deps.traffic.unanswered(socket)
  const broken = unanswered.find(({ req }) => !req.complete)
  const last = unanswered.at(-1)
  if (broken?.headersSent) socket.destroy()
  else if (broken !== undefined) refuse(broken, deps, fault)
  // What came before is answered in its turn, and that is the last answer.
  else if (last !== undefined) keepNoLonger(last)
  else closeWith(fault, socket, deps)
}

/** RFC 9110 §9.3.6: a tunnel, which only a proxy makes. */
export function refuseConnect(socket: Socket, deps: ListenerDeps): void {
  closeWith(new ApiError('method_not_allowed', 'CONNECT is not for this service'), socket, deps)
}

/** Nothing moved on a connection for a while. */
export function onQuiet(socket: Socket, { limits, traffic }: ListenerDeps): void {
  const unanswered = traffic.unanswered(socket)
  // Somebody works on an answer, for instance a wait for a job: that has an end of its own.
  if (unanswered.some(one => !one.headersSent && one.req.complete))
    socket.setTimeout(limits.stallMs)
  else socket.destroy()
}
