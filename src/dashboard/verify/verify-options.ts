import type { Context } from 'hono'
import type { Env } from '../deps.ts'
import { sentForm } from '../page/form-data.ts'

/** What somebody wants to know of which address. */
export type VerifyForm = {
  readonly email: string
  /** True: the answer is simulated. */
  readonly sandbox: boolean
  /** True: ask even if the answer is known. */
  readonly again: boolean
}

export const EMPTY_FORM: VerifyForm = { email: '', sandbox: false, again: false }

/** What the form of the page says. */
export async function readVerifyForm(c: Context<Env>): Promise<VerifyForm> {
  const { text } = await sentForm(c)
  // A space that is copied along with an address goes; one inside is a fault, and is told as one.
  return { email: text('email'), sandbox: text('sandbox') !== '', again: text('again') !== '' }
}
