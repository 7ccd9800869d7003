import { expect, test } from 'vitest'
import { hashSecret } from '../../src/accounts/key.ts'
import { csrfToken, hashToken, newSessionToken } from '../../src/accounts/session-store.ts'
import { systemRandom } from '../../src/platform/random.ts'

test('a session has a token of its own, and only its hash is for storage', () => {
  const [one, other] = [newSessionToken(systemRandom), newSessionToken(systemRandom)]
  expect(one.token).toMatch(/^[a-z0-9]{40}$/)
  expect(one.token).not.toBe(other.token)
  expect(one.hash).toBe(hashSecret(one.token))
  expect(hashToken(one.token)).toBe(one.hash)
  expect(one.hash).not.toContain(one.token)
})

test('the CSRF token belongs to one session, and differs from its token and the stored hash', () => {
  const [one, other] = [newSessionToken(systemRandom), newSessionToken(systemRandom)]
  const csrf = csrfToken(one.token)
  expect(csrf).toMatch(/^[a-f0-9]{64}$/)
  expect([one.token, one.hash, csrfToken(other.token)]).not.toContain(csrf)
})
