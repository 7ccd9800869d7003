import { createHash } from 'node:crypto'
import type { PasswordHasher } from '../../src/accounts/people/password.ts'
import type { Role } from '../../src/accounts/people/role.ts'
import type { Answer, createTestDashboard } from './dashboard.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

export const PASSWORD = 'correct horse battery'

type Invited = {
  readonly name?: string
  readonly email?: string
  readonly role?: Role
  readonly accountId?: string
}

/** Invites a person, as an admin of the account does; returns the ID and the token of the link. */
export async function invite(
  { json, addKey }: Pick<TestDashboard, 'json' | 'addKey'>,
  { accountId = 'acc_1', ...given }: Invited = {},
) {
  const body = { name: 'Ann Lee', email: 'ann@shop.example', role: 'admin', ...given }
  const key = accountId === 'acc_1' ? {} : { key: await addKey({ accountId }) }
  const { data } = await json('/v1/people', { body, ...key })
  const { id, email, url } = data as Record<'id' | 'email' | 'url', string>
  const { pathname: path } = new URL(url)
  return { id, email, token: path.split('/').at(-1) ?? '', path }
}

/** Sends a form of a page that needs no session. */
export async function submit(
  services: Pick<TestDashboard, 'fetch'>,
  path: string,
  fields: Readonly<Record<string, string>>,
  options: { readonly ip?: string } = {},
): Promise<Answer> {
  const body = new URLSearchParams(fields)
  const answer = await services.fetch(path, { method: 'POST', body, ...options })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** Invites a person who sets a password, and signs in. */
export async function join(services: TestDashboard, given: Invited = {}) {
  const invited = await invite(services, given)
  services.cookies.clear()
  await submit(services, invited.path, { password: PASSWORD, repeated: PASSWORD })
  return invited
}

/** Signs in with a password in a browser that keeps its cookies. */
export const signInAs = (
  services: TestDashboard,
  email: string,
  password: string = PASSWORD,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> => submit(services, '/sign-in', { email, password, ...more })

/** The value of a hidden field. */
export const hiddenField = ({ text }: Answer, name: string): string =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''

/** Hashes in the same turn of the event loop, so that the fake clock of a test stands still. */
export function instantPasswords(): PasswordHasher {
  const hash = (password: string) => createHash('sha256').update(password).digest('hex')
  return {
    isOverloaded: () => false,
    hash: async password => hash(password),
    verify: async (password, stored) => stored === hash(password),
  }
}
