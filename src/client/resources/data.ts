/** What an answer `{ success, data }` is about. */
export const dataOf = async <T>(answer: Promise<{ readonly data: T }>): Promise<T> =>
  (await answer).data
