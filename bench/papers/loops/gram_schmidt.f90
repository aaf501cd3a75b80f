! Modified Gram-Schmidt as a Fortran compiler gets it in Brandes, Arnold, Soddemann and Reith (2012): Listing 1 with
! arrays of two indexes, its loops over columns shared by OpenMP, and the blocked code of Section 3.

subroutine unblocked(q, r, m, n, ldr, threads)
    integer(8) :: m, n, ldr, i, j, k
    integer(4) :: threads
    real(BYTES) :: q(m, n), r(ldr, n)
    do i = 1, n
        !$omp parallel do num_threads(threads)
        do j = i, n
            r(i, j) = 0
            do k = 1, m
                r(i, j) = r(i, j) + q(k, i) * q(k, j)
            end do
        end do
        r(i, i) = sqrt(r(i, i))
        do k = 1, m
            q(k, i) = q(k, i) / r(i, i)
        end do
        do j = i + 1, n
            r(i, j) = r(i, j) / r(i, i)
        end do
        !$omp parallel do num_threads(threads)
        do j = i + 1, n
            do k = 1, m
                q(k, j) = q(k, j) - q(k, i) * r(i, j)
            end do
        end do
    end do
end subroutine

! Factors the m×n matrix q in place by blocks of b columns; b = n: unblocked.
subroutine gram_schmidt(q, r, m, n, b, threads) bind(c)
    integer(8), value :: m, n, b
    integer(4), value :: threads
    integer(8) :: i1, i2, i, j, k
    real(BYTES) :: q(m, n), r(n, n)
    real(BYTES), allocatable :: saved(:, :)
    allocate(saved(m, merge(b, 0_8, b < n)))
    do i1 = 1, n, b
        i2 = min(i1 + b - 1, n)
        if (i2 < n) saved(:, 1:b) = q(:, i1:i2)
        call unblocked(q(1, i1), r(i1, i1), m, i2 - i1 + 1, n, threads)
        !$omp parallel do num_threads(threads) private(i, k)
        do j = i2 + 1, n
            do i = i1, i2
                r(i, j) = 0
                do k = 1, m
                    r(i, j) = r(i, j) + saved(k, i - i1 + 1) * q(k, j)
                end do
                r(i, j) = r(i, j) / r(i, i)
                do k = 1, m
                    q(k, j) = q(k, j) - r(i, j) * q(k, i)
                end do
            end do
        end do
    end do
end subroutine
