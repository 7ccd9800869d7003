/** Facts of a route that are needed before the app runs. */
type RouteFacts = {
  /** Whether it verifies addresses, so that it waits for its turn and is refused under overload. */
  readonly isVerification?: boolean | undefined
  /** Whether its body is a list, which may have megabytes and takes longer to arrive. */
  readonly takesList?: boolean | undefined
}

/** Turns the path of an OpenAPI document into that of a Hono route: `/v1/jobs/:id`. */
export const toRoutePath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1')

/** The routes whose requests are treated differently before the app runs, by method and path. */
export class RouteTable {
  /** By path, then by method: joining the two would cost more than looking up both. */
  readonly #facts = new Map<string, Map<string, RouteFacts>>()

  /** Adds a route without path parameters, such as `POST /v1/verify/single`. */
  add(target: string, facts: RouteFacts): void {
    const [method = '', path = ''] = target.split(' ')
    const methods = this.#facts.get(path) ?? new Map()
    this.#facts.set(path, methods.set(method, facts))
  }

  /** Finds the facts of a request by its method and its URL, a path with an optional query. */
  find(method = '', url = ''): RouteFacts {
    const end = url.indexOf('?')
    const path = end === -1 ? url : url.slice(0, end)
    // `/v1/jobs/` is the path `/v1/jobs`.
    const name = path.endsWith('/') ? path.slice(0, -1) : path
    return this.#facts.get(name)?.get(method) ?? NO_FACTS
  }
}

const NO_FACTS: RouteFacts = {}
