/** Returns `data` of a response `{ success, data }`. */
export const unwrapData = async <T>(response: Promise<{ readonly data: T }>): Promise<T> =>
  (await response).data
