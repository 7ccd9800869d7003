import type { Mail, Notify } from '../../src/webhooks/mail-transport.ts'

export type FakeNotify = Notify & {
  /** Accepted mails, in order. */
  readonly sent: Mail[]
  /** Attempted mails, in order. */
  readonly tried: Mail[]
  readonly isClosed: boolean
  /** Sets the handling of mails from now on: rejects those for which `how` rejects. */
  handleWith(how: (mail: Mail) => Promise<void>): void
}

/** Creates a mail transport that records mails. */
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
    handleWith(next) {
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
