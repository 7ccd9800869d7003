import type { Log, LogFields } from '../platform/log.ts'

/** Sends mail; an injected dependency. */
export interface Notify {
  /** Rejects if the mail could not be handed to the server. */
  send(mail: Mail): Promise<void>
  close(): void
}

export type Mail = {
  readonly to: string
  readonly subject: string
  /** Plain text. */
  readonly text: string
  /** `<…>`; a new one if omitted. */
  readonly messageId?: string
  /** Fields for a log line beside the subject. */
  readonly brief: LogFields
}

/** Writes alerts to the log, if no mail server or no recipient is configured. */
export const createLogTransport = (log: Log): Notify => ({
  async send({ subject, brief }) {
    log.warn(subject, brief)
  },
  close() {},
})
