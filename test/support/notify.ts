import type { Mail, Notify } from '../../src/webhooks/alerts/mail-transport.ts'

export type FakeNotify = Notify & {
  /** All that was handed over, in order; what was not taken is not among them. */
  readonly sent: Mail[]
  /** All that it was asked to send. */
  readonly tried: Mail[]
  readonly isClosed: boolean
  /** What happens to a mail from now on: it rejects where this does, and is taken otherwise. */
  meet(how: (mail: Mail) => Promise<void>): void
}

/** A way for mail that keeps what it got. */
export function fakeNotify(): FakeNotify {
  const sent: Mail[] = []
  const tried: Mail[] = []
  let isClosed = false
  let how: (mail: Mail) => Promise<void> = async () => {}
  return {
    sent,
    tried,
    get isClosed() {
      return isClosed
    },
    meet(next) {
      how = next
    },
    async send(mail) {
      tried.push(mail)
      await how(mail)
      sent.push(mail)
    },
    close() {
      isClosed = true
    },
  }
}
