import { describe, expect, test } from 'vitest'
import {
  findInvitedPeople,
  findLinkedPeople,
  joinWithIdentity,
  linkIdentity,
  unlinkIdentity,
} from '../../../src/accounts/people/identities.ts'
import { invitePerson, renewInvitation } from '../../../src/accounts/people/people.ts'
import { findPerson } from '../../../src/accounts/people/person-store.ts'
import { createSession } from '../../../src/accounts/session-store.ts'
import { COMMAND_LINE } from '../../../src/audit.ts'
import { write } from '../../../src/db/database.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { addAccount } from '../../support/account-rows.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'

const IDENTITY = { issuer: 'https://login.example', subject: 'u-1' }
const OTHER = { issuer: 'https://login.example', subject: 'u-2' }

async function open() {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database)
  await addAccount(database, 'acc_b')
  const services = { database, clock, random: countedRandom(), ip: '192.0.2.1' }
  const audited = { ...services, origin: COMMAND_LINE }
  const invite = (accountId = 'acc_a', email = 'ann@shop.example') =>
    invitePerson(audited, { accountId, email, name: 'Ann', role: 'member', actor: null })
  const join = (personId: string, identity = IDENTITY, token: string | null = null) =>
    joinWithIdentity(services, { personId, identity, email: 'Ann@Shop.example', token })
  const linkedIds = async (identity = IDENTITY) =>
    (await findLinkedPeople(services, identity)).map(({ id }) => id)
  const startSession = (personId: string, id: string) =>
    write(database, trx => {
      const session = { id, hash: id, keyId: personId, accountId: 'acc_a', ip: '', agent: '' }
      return createSession(trx, { ...session, now: clock.now() })
    })
  const sessionIds = async () =>
    (await database.db.selectFrom('session').select('id').orderBy('id').execute()).map(
      ({ id }) => id,
    )
  return { clock, database, services, audited, invite, join, linkedIds, startSession, sessionIds }
}

describe('an identity', () => {
  test('is found for the people of all accounts who are linked to it', async () => {
    const { invite, join, linkedIds, services } = await open()
    const [a, b] = [await invite(), await invite('acc_b')]
    expect(await findInvitedPeople(services, 'ANN@shop.example')).toHaveLength(2)
    await join(a.person.id)
    expect(await linkedIds()).toEqual([a.person.id])
    expect(await findInvitedPeople(services, 'ann@shop.example')).toHaveLength(1)
    await join(b.person.id)
    expect((await linkedIds()).toSorted()).toEqual([a.person.id, b.person.id].toSorted())
    expect(await linkedIds(OTHER)).toEqual([])
    expect(await linkedIds({ ...IDENTITY, issuer: 'https://evil.example' })).toEqual([])
  })

  test('belongs to one person of an account, also if two join at once', async () => {
    const { invite, services, linkedIds } = await open()
    const people = [await invite(), await invite('acc_a', 'bob@shop.example')]
    const outcomes = await Promise.all(
      people.map(({ person }) =>
        joinWithIdentity(services, {
          personId: person.id,
          identity: IDENTITY,
          email: person.email,
          token: null,
        }),
      ),
    )
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(['linked', 'refused'])
    expect(outcomes).toContainEqual(expect.objectContaining({ why: 'identity_taken' }))
    expect(await linkedIds()).toHaveLength(1)
  })

  test('uses an invitation up, once, and ends all sessions of the person', async () => {
    const { invite, join, audited, startSession, sessionIds, linkedIds } = await open()
    const { person } = await invite()
    expect(await join(person.id)).toMatchObject({ kind: 'linked' })
    expect(await join(person.id, OTHER)).toMatchObject({ kind: 'refused', why: 'not_invited' })
    await startSession(person.id, 'ses_1')
    // A new link replaces the identity, for a person who has a new one.
    const target = { personId: person.id, accountId: null, actor: null }
    const { token } = await renewInvitation(audited, target)
    expect(await join(person.id, OTHER)).toMatchObject({ why: 'not_invited' })
    expect(await join(person.id, OTHER, 'another token')).toMatchObject({ why: 'not_invited' })
    expect(await join(person.id, OTHER, token)).toMatchObject({ kind: 'linked' })
    expect(await sessionIds()).toEqual([])
    expect(await linkedIds()).toEqual([])
    expect(await linkedIds(OTHER)).toEqual([person.id])
  })

  test('is not linked after the invitation has expired', async () => {
    const { invite, join, clock } = await open()
    const { person, token } = await invite()
    await clock.advance(7 * DAY)
    expect(await join(person.id, IDENTITY, token)).toMatchObject({ why: 'not_invited' })
  })

  test('is linked in a live session of the person only, and its removal ends the others', async () => {
    const { invite, services, audited, database, startSession, sessionIds, clock } = await open()
    const { person } = await invite()
    const bob = await invite('acc_a', 'bob@shop.example')
    await startSession(person.id, 'ses_1')
    await startSession(person.id, 'ses_2')
    await startSession(bob.person.id, 'ses_3')
    const ask = (sessionId: string) =>
      linkIdentity(services, {
        personId: person.id,
        sessionId,
        identity: IDENTITY,
        email: person.email,
      })
    expect(await ask('ses_3')).toMatchObject({ why: 'session_ended' })
    expect(await ask('ses_4')).toMatchObject({ why: 'session_ended' })
    expect(await ask('ses_1')).toMatchObject({ kind: 'linked' })
    await unlinkIdentity(audited, { person, keepSession: 'ses_1' })
    expect(await sessionIds()).toEqual(['ses_1', 'ses_3'])
    expect(await findPerson(database.reader, null, person.id)).toMatchObject({
      oidc_issuer: null,
      oidc_subject: null,
    })
    await clock.advance(DAY)
    expect(await ask('ses_1')).toMatchObject({ why: 'session_ended' })
  })
})
