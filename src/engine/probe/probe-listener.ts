import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** Somebody who hears how mail servers are called and what is said, while it happens. Neither method may throw. */
export type ProbeListener = {
  readonly onCall: (call: ServerCall) => void
  /** Each line of a conversation: `C: …` or `S: …`, as it was said, so foreign and unclean. */
  readonly onLine: (line: string) => void
}

/** A call at a mail server, and what came of it. */
export type ServerCall = {
  /** Null where it did not come to any host. */
  readonly host: string | null
  readonly ip: string | null
  readonly port: number
  /** False: nobody was dialled, as it is known beforehand what would come of it. */
  readonly dialled: boolean
  /** Why there is no conversation; null: it answers. */
  readonly answer: RecipientOutcome | null
}
