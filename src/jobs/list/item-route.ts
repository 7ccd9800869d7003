import type { ProbeTask } from '../../engine/probe/prepare.ts'
import type { ItemRoute } from '../item-store.ts'

/** Returns the route of an item in the form in which it is stored. */
export const toItemRoute = (
  position: number,
  { operator, address, route }: ProbeTask,
): ItemRoute => ({
  position,
  operator: operator.name,
  domain: address.domain.ascii,
  route: JSON.stringify(route),
})
