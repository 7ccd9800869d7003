import type { Log, LogFields } from '../../platform/log.ts'

/** Mail to people, as a door to the world. */
export interface Notify {
  /** Rejects when it could not be handed over. */
  send(mail: Mail): Promise<void>
  close(): void
}

export type Mail = {
  readonly to: string
  readonly subject: string
  /** Plain text. */
  readonly text: string
  /** What a log needs of it beside the subject. */
  readonly brief: LogFields
}

/** Where no mail server is set, and where nobody is named: a notice is a line of the log. */
export const logNotify = (log: Log): Notify => ({
  async send({ subject, brief }) {
    log.warn(subject, brief)
  },
  close() {},
})
