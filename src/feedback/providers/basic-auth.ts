import { isEqualSecret, reject } from './checks.ts'
import type { ProviderRequest } from './provider.ts'

/** The username of HTTP Basic authentication. The password identifies the source. */
export const BASIC_USERNAME = 'ev'

/** Checks the credentials of HTTP Basic authentication (RFC 7617). */
export function checkBasicAuth({ header, key }: ProviderRequest): void {
  const given = BASIC.exec(header('Authorization') ?? '')?.[1]
  if (given === undefined)
    reject(
      'authentication',
      'HTTP Basic authentication with the password of the source is missing.',
    )
  const credentials = Buffer.from(given, 'base64').toString('utf8')
  if (!isEqualSecret(credentials, `${BASIC_USERNAME}:${key}`))
    reject('authentication', 'The username or the password is wrong.')
}

/** The name of the scheme is case-insensitive (RFC 9110 §11.1). */
const BASIC = /^Basic +([\w+/=-]{1,400}) *$/i
