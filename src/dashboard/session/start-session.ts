import type { Context } from 'hono'
import type { Account } from '../../accounts/account-store.ts'
import type { ApiKey } from '../../accounts/key-store.ts'
import { type Person, updatePerson } from '../../accounts/people/person-store.ts'
import { DEVICE_TTL_MS, newDevice } from '../../accounts/people/sign-in.ts'
import { createSession, newSessionToken, SESSION_MAX_MS } from '../../accounts/session-store.ts'
import { write } from '../../db/database.ts'
import { SECOND } from '../../platform/clock.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { keepDevice, keepToken } from './cookie.ts'
import { auditSession } from './signed-in.ts'

/** The key or the person that signs in. */
type Opener =
  | {
      readonly key: Pick<ApiKey, 'id' | 'accountId' | 'name'>
      /** End of the grace period of a rotated secret, epoch ms; null if it was not rotated. */
      readonly secretExpiresAt: number | null
    }
  | { readonly person: Person }

/** Starts a session: stores it with its audit entry, and sets its cookie. */
export async function startSession(
  c: Context<Env>,
  deps: DashboardDeps,
  opener: Opener,
): Promise<void> {
  const { database, random, clock } = deps
  const { token, hash } = newSessionToken(random)
  const sessionId = `ses_${random.token(ID_LENGTH)}`
  const now = clock.now()
  const isPerson = 'person' in opener
  const [keyId, accountId]: [string, Account['id']] = isPerson
    ? [opener.person.id, opener.person.account_id]
    : [opener.key.id, opener.key.accountId]
  await write(database, async trx => {
    await createSession(trx, {
      id: sessionId,
      hash,
      keyId,
      accountId,
      now,
      secretExpiresAt: isPerson ? null : opener.secretExpiresAt,
      ip: c.get('ip'),
      agent: sanitizeText(c.req.header('User-Agent') ?? '', AGENT_LENGTH_MAX),
    })
    if (isPerson) await updatePerson(trx, keyId, { last_signed_in_at: now })
    await auditSession(trx, c, deps, { action: 'session.started', by: opener, sessionId })
  })
  keepToken(c, token, SESSION_MAX_MS / SECOND)
  if (isPerson) keepDevice(c, newDevice(deps, opener.person), DEVICE_TTL_MS / SECOND)
}

const ID_LENGTH = 16
/** Enough to distinguish browsers. */
const AGENT_LENGTH_MAX = 200
