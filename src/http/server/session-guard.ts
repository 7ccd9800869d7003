import type { ServerHttp2Session } from 'node:http2'
import { type Clock, MINUTE } from '../../base/clock.ts'
import type { ServerLimits } from './limits.ts'

/**
 * Ends HTTP/2 connections of clients that ask nothing, or that keep us busy with frames that ask nothing. Node's
 * own timer for a connection does not do it: any frame sets it back.
 */
export function guardSession(session: ServerHttp2Session, clock: Clock, limits: ServerLimits) {
  endWhenIdle(session, clock, limits.keepAliveMs)
  endWhenFlooded(session, clock, limits.controlFramesPerMinute)
  session.on('error', () => {}) // Whoever breaks the protocol is gone; the log need not know.
}

function endWhenIdle(session: ServerHttp2Session, clock: Clock, keepAliveMs: number): void {
  let streams = 0
  let cancel = () => {}
  const arm = () => {
    cancel()
    cancel = clock.after(keepAliveMs, () => session.destroy())
  }
  arm()
  session.on('stream', stream => {
    streams++
    cancel()
    stream.once('close', () => {
      if (--streams === 0 && !session.destroyed) arm()
    })
  })
  session.once('close', () => cancel())
}

function endWhenFlooded(session: ServerHttp2Session, clock: Clock, perMinute: number): void {
  let since = clock.ticks()
  let frames = 0
  const count = () => {
    if (clock.ticks() - since > MINUTE) {
      since = clock.ticks()
      frames = 0
    }
    if (++frames > perMinute) session.destroy(undefined, ENHANCE_YOUR_CALM)
  }
  session.on('remoteSettings', count)
  session.on('ping', count)
}

/** RFC 9113 §7 */
const ENHANCE_YOUR_CALM = 11
