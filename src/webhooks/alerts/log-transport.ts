import type { Log } from '../../platform/log.ts'
import type { Notify } from './mail-transport.ts'

/** Where no mail server is set, and where nobody is named: a notice is a line of the log. */
export const logNotify = (log: Log): Notify => ({
  async send({ subject, brief }) {
    log.warn(subject, brief)
  },
  close() {},
})
