import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '../error/api-error.ts'
import type { ListenerParts } from './listener.ts'
import type { NodeResponse } from './node.ts'
import { closeWith, faultOfParser, refuse } from './refusal.ts'
import { keepNoLonger, type Line } from './traffic.ts'

/** Answers what the parser could not read, once for each connection. */
export function parserAnswers(parts: ListenerParts): (error: Error, socket: Socket) => void {
  const answered = new WeakSet<Socket>()
  return (error, socket) => {
    const fault = faultOfParser(error)
    if (fault === null || !socket.writable) return void socket.destroy()
    // What is sent after it cannot be read either.
    if (answered.has(socket)) return
    answered.add(socket)
    answerParser(fault, socket, parts)
  }
}

function answerParser(fault: ApiError, socket: Socket, parts: ListenerParts): void {
  const unanswered = parts.traffic.unanswered(socket) as ServerResponse[]
  const broken = unanswered.find(({ req }) => !req.complete)
  const last = unanswered.at(-1)
  if (broken?.headersSent) socket.destroy()
  else if (broken !== undefined) refuse(broken, parts, fault)
  // What came before is answered in its turn, and that is the last answer.
  else if (last !== undefined) keepNoLonger(last)
  else closeWith(fault, socket, parts)
}

/** RFC 9110 §9.3.6: a tunnel, which only a proxy makes. */
export function refuseConnect(to: Socket | NodeResponse, parts: ListenerParts): void {
  const fault = new ApiError('method_not_allowed', 'CONNECT is not for this service')
  if ('writeHead' in to) refuse(to, parts, fault)
  else closeWith(fault, to, parts)
}

/** Nothing moved on a connection for a while. */
export function onQuiet(line: Line, { limits, traffic }: ListenerParts): void {
  // Sessions have a guard, and their streams timers of their own.
  if ('goaway' in line) return
  const unanswered = traffic.unanswered(line) as ServerResponse[]
  // Somebody works on an answer, for instance a wait for a job: that has an end of its own.
  if (unanswered.some(one => !one.headersSent && one.req.complete)) line.setTimeout(limits.stallMs)
  else line.destroy()
}
