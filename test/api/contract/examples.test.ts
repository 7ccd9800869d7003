import { describe, expect, test } from 'vitest'
import { bareApi, PROVIDER_PATH, placesOf } from './document.ts'
import { bodiesOf, createExampleService, pathOf } from './example-requests.ts'

const { document } = bareApi()
/** Without the path of email providers, which needs a signature. */
const places = placesOf(document).filter(({ path }) => path !== PROVIDER_PATH)

describe('an example of the document', () => {
  test.each(places.map(place => [`${place.method} ${place.path}`, place] as const))(
    '%s is answered as documented',
    async (_, place) => {
      const { responses } = place.operation
      const bodies = await bodiesOf(place)
      for (const body of bodies.length === 0 ? [{}] : bodies) {
        const fixture = await createExampleService()
        const path = await pathOf(fixture, place)
        const options = { method: place.method, ...body }
        const response = await fixture.settled(fixture.request(path, options))
        const text = await response.text()
        const successStatus = Object.keys(responses).find(status => status.startsWith('2'))
        expect(String(response.status), text).toBe(successStatus)
      }
    },
  )
})
