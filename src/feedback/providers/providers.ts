import { mailgun } from './mailgun.ts'
import { postmark } from './postmark.ts'
import type { Provider } from './provider.ts'
import { sendgrid } from './sendgrid.ts'
import { ses } from './ses.ts'
import { sparkpost } from './sparkpost.ts'

/** Email providers, by the name in the path of their requests. */
export const PROVIDERS = { ses, sendgrid, mailgun, postmark, sparkpost } as const satisfies Record<
  string,
  Provider
>

export type ProviderName = keyof typeof PROVIDERS

export const PROVIDER_NAMES = Object.keys(PROVIDERS) as [ProviderName, ...ProviderName[]]

export const isProviderName = (text: string): text is ProviderName => Object.hasOwn(PROVIDERS, text)
