import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** Receives dial attempts and dialogue lines as they happen. Neither method may throw. */
export type ProbeListener = {
  readonly onCall: (call: ServerCall) => void
  /** Receives each line of the dialogue, `C: …` or `S: …`, as sent: untrusted and not sanitized. */
  readonly onLine: (line: string) => void
}

/** An attempt to open a session with a mail server, and its result. */
export type ServerCall = {
  /** Null if no host was chosen. */
  readonly host: string | null
  readonly ip: string | null
  readonly port: number
  /** False if nothing was dialed because the result was already known. */
  readonly dialled: boolean
  /** Why there is no session; null if the server answers. */
  readonly answer: RecipientOutcome | null
}

/** Returns the line of a dialogue that names its mail server. */
export const connectionNote = ({ host, ip }: Pick<ServerCall, 'host' | 'ip'>): string =>
  `* connected to ${host} [${ip}]`
