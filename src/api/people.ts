import type { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import {
  changePerson,
  type Invitation,
  invitationUrl,
  invitePerson,
  type PersonTarget,
  removePerson,
  renewInvitation,
  resetSecondFactor,
} from '../accounts/people/people.ts'
import { listPeople, presentPerson } from '../accounts/people/person-store.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import { ownRights } from './keys.ts'
import { answerWith, type IdempotencyDeps } from './middleware/idempotency.ts'
import { withOrigin } from './request-context.ts'
import { newRouter, route } from './route.ts'
import { json } from './schemas/answers.ts'
import { idParams } from './schemas/fields.ts'
import {
  NewPersonRequest,
  PersonAnswer,
  PersonLink,
  PersonList,
  PersonPatchRequest,
} from './schemas/person.ts'

type PeopleDeps = Pick<ApiDeps, 'database' | 'guard' | 'random' | 'settings'> & IdempotencyDeps

/** Routes of the people of an account. */
export function peopleRoutes(service: PeopleDeps) {
  const router = newRouter()
  router.include(inviteRoutes(service))
  router.include(personRoutes(service))
  return router
}

/** Fits a name and an address. */
const BODY_MAX = 4_096

function inviteRoutes(service: PeopleDeps) {
  const router = newRouter()

  const list = route(service, 'GET /v1/people', {
    id: 'listPeople',
    summary: 'List people',
    description: 'Returns the people who sign in to the dashboard of the account, by name.',
    scope: 'account:read',
    answer: json(PersonList, 'The people'),
  })
  router.handle(list, async c => {
    const people = await listPeople(service.database.reader, c.get('caller').account.id)
    const data = { people: people.map(presentPerson), total: people.length }
    return c.json({ success: true as const, data }, 200)
  })

  const invite = route(service, 'POST /v1/people', {
    id: 'invitePerson',
    summary: 'Invite a person',
    description:
      "Returns a link, once, at which the person sets a password or signs in with the identity provider. The role can't have more rights than the caller.",
    scope: 'people:write',
    idempotent: true,
    body: { schema: NewPersonRequest, max: BODY_MAX },
    answer: json(PersonLink, 'The person with the link'),
    status: 201,
  })
  router.handle(invite, c => {
    const caller = c.get('caller')
    const ids = { accountId: caller.account.id, actor: ownRights(caller) }
    const input = { ...c.req.valid('json'), ...ids }
    return answerWith<Invitation>(
      c,
      service,
      beforeCommit => invitePerson(withOrigin(c, service), input, beforeCommit),
      invitation => ({ status: 201, body: linkBody(service, invitation) }),
    )
  })

  return router
}

const linkBody = ({ settings }: PeopleDeps, { person, token }: Invitation) => ({
  success: true,
  data: { ...presentPerson(person), url: invitationUrl(settings.baseUrl, token) },
})

/** Routes that change one person. */
function personRoutes(service: PeopleDeps) {
  const router = newRouter()

  const change = route(service, 'PATCH /v1/people/{id}', {
    id: 'updatePerson',
    summary: 'Update a person',
    description:
      "Fields that you omit keep their values. A role applies to the next request. People can't change their own role.",
    scope: 'people:write',
    params,
    body: { schema: PersonPatchRequest, example: { role: 'viewer' }, max: BODY_MAX },
    answer: json(PersonAnswer, 'The person'),
  })
  router.handle(change, async c => {
    const { name, role } = c.req.valid('json')
    const person = await changePerson(withOrigin(c, service), {
      ...personTarget(c, c.req.valid('param')),
      ...omitUndefined({ name, role }),
    })
    return c.json({ success: true as const, data: presentPerson(person) }, 200)
  })

  const remove = route(service, 'DELETE /v1/people/{id}', {
    id: 'removePerson',
    summary: 'Remove a person',
    description: "The sessions of the person end at once. People can't remove themselves.",
    scope: 'people:write',
    params,
    answer: { description: 'The person is removed' },
    status: 204,
  })
  router.handle(remove, async c => {
    await removePerson(withOrigin(c, service), personTarget(c, c.req.valid('param')))
    return c.body(null, 204)
  })

  const link = route(service, 'POST /v1/people/{id}/link', {
    id: 'createPersonLink',
    summary: 'Create a new link for a person',
    description:
      'Returns a link, once, at which the person sets another password; the previous link stops working. The current password works until then. A second factor stays.',
    scope: 'people:write',
    idempotent: true,
    params,
    answer: json(PersonLink, 'The person with the link'),
  })
  router.handle(link, c => {
    const target = personTarget(c, c.req.valid('param'))
    return answerWith<Invitation>(
      c,
      service,
      beforeCommit => renewInvitation(withOrigin(c, service), target, beforeCommit),
      invitation => ({ status: 200, body: linkBody(service, invitation) }),
    )
  })

  const reset = route(service, 'DELETE /v1/people/{id}/two-factor', {
    id: 'resetSecondFactor',
    summary: 'Remove the second factor of a person',
    description: 'For a person who lost the phone and the recovery codes.',
    scope: 'people:write',
    params,
    answer: { description: 'The second factor is removed' },
    status: 204,
  })
  router.handle(reset, async c => {
    await resetSecondFactor(withOrigin(c, service), personTarget(c, c.req.valid('param')))
    return c.body(null, 204)
  })

  return router
}

const params = idParams('ID of the person.', 'per_01')

/** The person of the path parameter, within the account of the caller. */
function personTarget(c: Context<Env>, { id }: z.output<typeof params>): PersonTarget {
  const caller = c.get('caller')
  return { personId: id, accountId: caller.account.id, actor: ownRights(caller) }
}
