! A parabola through points, from Fortran by iso_c_binding. Columns are stored as quoin.h has them by default.

module quoin
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int32_t), parameter :: quoin_host = -1, quoin_type_f64 = 1, quoin_column_major = 0

    type, bind(c) :: quoin_matrix
        type(c_ptr) :: data = c_null_ptr
        integer(c_int64_t) :: rows = 0, cols = 0, ld = 1
        integer(c_int32_t) :: type = quoin_type_f64, order = quoin_column_major
        integer(c_int64_t) :: stride = 0
    end type

    interface
        integer(c_int) function quoin_context_create(device, threads, stream, ctx) bind(c)
            import
            integer(c_int32_t), value :: device, threads
            type(c_ptr), value :: stream
            type(c_ptr) :: ctx
        end function
        subroutine quoin_context_destroy(ctx) bind(c)
            import
            type(c_ptr), value :: ctx
        end subroutine
        integer(c_int) function quoin_least_squares(ctx, A, B, options, X, residual_norms, solution) bind(c)
            import
            type(c_ptr), value :: ctx, options, solution
            type(quoin_matrix) :: A, B, X
            real(c_double) :: residual_norms(*)
        end function
        type(c_ptr) function quoin_last_error() bind(c)
            import
        end function
    end interface

contains

    ! Views an array, which has the attribute `target` where it is declared.
    function matrix(array) result(view)
        real(c_double), intent(in), target, contiguous :: array(:, :)
        type(quoin_matrix) :: view
        view%data = c_loc(array)
        view%rows = size(array, 1)
        view%cols = size(array, 2)
        view%ld = max(1, size(array, 1))
    end function

    ! Prints the sentence of the last error and stops, if there was one.
    subroutine check(status)
        integer(c_int), intent(in) :: status
        character(kind=c_char), pointer :: text(:)
        integer :: length
        if (status == 0) return
        call c_f_pointer(quoin_last_error(), text, [1000])
        length = 0
        do while (text(length + 1) /= c_null_char)
            length = length + 1
        end do
        print *, text(1:length)
        error stop 1
    end subroutine
end module

program least_squares
    use quoin
    implicit none
    integer, parameter :: m = 200
    real(c_double), target :: a(m, 3), b(m, 1), x(3, 1)
    real(c_double) :: t, norms(1)
    type(c_ptr) :: ctx
    integer :: i

    do i = 1, m
        t = real(i, c_double) / m
        a(i, :) = [1.0_c_double, t, t**2]
        b(i, 1) = 2 - 3 * t + 4 * t**2
    end do
    call check(quoin_context_create(quoin_host, 0, c_null_ptr, ctx))
    call check(quoin_least_squares(ctx, matrix(a), matrix(b), c_null_ptr, matrix(x), norms, c_null_ptr))
    call quoin_context_destroy(ctx)
    print '(3(a, f8.5), a, es8.1)', 'y = ', x(1, 1), ' + ', x(2, 1), ' t + ', x(3, 1), ' t^2, residual norm ', norms(1)
    if (any(abs(x(:, 1) - [2, -3, 4]) > 1e-12)) error stop 1
end program
