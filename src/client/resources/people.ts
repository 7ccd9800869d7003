import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
  NewPerson,
  Person,
  PersonAnswer,
  PersonLink,
  PersonList,
  PersonPatch,
} from '../types.ts'
import { createRequests } from './requests.ts'

export type People = {
  list(options?: CallOptions): Promise<Person[]>
  /** Invites a person. Only this response contains the link. */
  invite(person: NewPerson, options?: CreateOptions): Promise<PersonLink['data']>
  /** Updates a person; omitted fields keep their value. */
  update(personId: string, changes: PersonPatch, options?: CallOptions): Promise<Person>
  /** Creates a new link, at which the person sets another password. */
  link(personId: string, options?: CreateOptions): Promise<PersonLink['data']>
  /** Removes the second factor of a person who lost it. */
  resetTwoFactor(personId: string, options?: CallOptions): Promise<void>
  /** Removes a person; the sessions end at once. */
  delete(personId: string, options?: CallOptions): Promise<void>
}

export function createPeopleResource(connection: Connection): People {
  const requests = createRequests(connection)
  return {
    list: async options => (await requests.get<PersonList>('/v1/people', options)).people,
    invite: (person, options) => requests.create<PersonLink>('/v1/people', person, options),
    update: (personId, changes, options) =>
      requests.update<PersonAnswer>(personPath(personId), changes, options),
    link: (personId, options) =>
      requests.create<PersonLink>(`${personPath(personId)}/link`, undefined, options),
    resetTwoFactor: (personId, options) =>
      requests.delete(`${personPath(personId)}/two-factor`, options),
    delete: (personId, options) => requests.delete(personPath(personId), options),
  }
}

const personPath = (personId: string) => `/v1/people/${encodeId(personId)}`
